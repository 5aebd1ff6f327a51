// The formulas of decompositions.h, one for each operator, over ATen itself.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace plumbline::partition {

/// The arguments of a call, one for each of its schema, to its results in order (undefined where there is none). An
/// empty answer leaves the call whole.
using DecompositionFormula = std::vector<at::Tensor> (*)(std::span<const c10::IValue> arguments);

/// By operator name and overload: "aten::native_layer_norm", "aten::slice.Tensor".
const std::map<std::string, DecompositionFormula>& decomposition_formulas();

}  // namespace plumbline::partition

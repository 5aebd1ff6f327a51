// The formulas behind decompositions.h, one for each operator overload, written with ATen calls.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace plumbline::partition {

/// Takes one value for each argument of the operator's schema, and returns the results in order, undefined for None. An
/// empty vector means that the call is not decomposed.
using DecompositionFormula = std::vector<at::Tensor> (*)(std::span<const c10::IValue> arguments);

/// All formulas, by operator name and overload: "aten::native_layer_norm", "aten::slice.Tensor". Thread-safe.
const std::map<std::string, DecompositionFormula>& decomposition_formulas();

}  // namespace plumbline::partition

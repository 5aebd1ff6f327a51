// Converts the non-tensor arguments of a call to the form that the formulas of flop_formulas.h read.
#pragma once

#include <ATen/core/ivalue.h>

#include "runtime/flops/flop_formulas.h"

namespace plumbline::flops {

/// Converts a bool, a string, or a list of integers or bools; true becomes 1 in a list. Anything else, such as an
/// integer or a float, becomes std::monostate.
inline FlopConstant flop_constant(const c10::IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isIntList()) return value.toIntVector();
  if (value.isString()) return value.toStringRef();
  if (!value.isBoolList()) return {};
  const auto flags = value.toBoolList();
  return std::vector<int64_t>(flags.begin(), flags.end());
}

}  // namespace plumbline::flops

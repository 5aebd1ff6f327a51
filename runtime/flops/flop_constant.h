// The non-tensor arguments of a call, in the form that the formulas read.
#pragma once

#include <ATen/core/ivalue.h>

#include "runtime/flops/flop_formulas.h"

namespace plumbline::flops {

inline FlopConstant flop_constant(const c10::IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isIntList()) return value.toIntVector();
  if (value.isString()) return value.toStringRef();
  if (!value.isBoolList()) return {};
  const auto flags = value.toBoolList();
  return std::vector<int64_t>(flags.begin(), flags.end());
}

}  // namespace plumbline::flops

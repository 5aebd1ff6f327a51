// A number passed for a tensor parameter, as in Python's `x * 2.0`.
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/core/ivalue.h>

#include "runtime/graph/schema_types.h"

namespace plumbline::graph {

/// Returns a tensor without dimensions that type promotion treats as a number.
inline at::Tensor wrapped_number(const c10::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// Converts a constant for a parameter of `type`: a number becomes a wrapped_number() if `type` is a tensor; other
/// constants are unchanged.
inline c10::IValue boxed_constant(const c10::IValue& constant, const c10::Type& type) {
  return constant.isScalar() && takes_tensor(type) ? c10::IValue(wrapped_number(constant.toScalar())) : constant;
}

}  // namespace plumbline::graph

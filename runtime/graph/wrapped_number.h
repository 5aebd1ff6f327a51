// A number where an operator takes a tensor, as Python's `x * 2.0` passes it.
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/core/ivalue.h>

#include "runtime/graph/schema_types.h"

namespace plumbline::graph {

/// A tensor without dimensions that counts as a number in type promotion.
inline at::Tensor wrapped_number(const c10::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// A constant as a kernel takes it where the schema declares `type`: a number becomes a tensor where one is declared.
inline c10::IValue boxed_constant(const c10::IValue& constant, const c10::Type& type) {
  return constant.isScalar() && takes_tensor(type) ? c10::IValue(wrapped_number(constant.toScalar())) : constant;
}

}  // namespace plumbline::graph

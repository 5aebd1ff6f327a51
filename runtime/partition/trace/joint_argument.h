// Arguments and results of operator calls in the words of a joint graph.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// `value` as a call got it, as an argument of the schema's type `type` (Argument::real_type(), which tells a dtype
/// from an integer). Tensors become what `tensor` says; an undefined one is None. What joint graphs have no word for is
/// `Other`.
JointArgument joint_argument(const c10::IValue& value, const c10::Type& type,
                             const std::function<JointArgument(const at::Tensor&)>& tensor);

/// Whether leaving `argument` out of the call would mean the same.
bool is_default(const JointArgument& argument, const c10::Argument& parameter);

/// Dtype, shape, strides, offset, bytes and device; `storage` is left to the caller.
JointResult joint_result(const at::Tensor& tensor);

}  // namespace plumbline::partition

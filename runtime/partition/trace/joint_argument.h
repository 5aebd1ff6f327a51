// Converts arguments and results of operator calls to those of a joint graph.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Converts an argument `value` whose type in the schema is `type`: pass Argument::real_type(), which distinguishes a
/// dtype from an integer. `tensor` converts each defined tensor; an undefined one becomes None. A value of any other
/// type, such as a generator, becomes `Other`.
JointArgument joint_argument(const c10::IValue& value, const c10::Type& type,
                             const std::function<JointArgument(const at::Tensor&)>& tensor);

/// Whether `argument` equals the schema's default, so that the call may omit it.
bool is_default(const JointArgument& argument, const c10::Argument& parameter);

/// Returns dtype, shape, strides, offset, bytes and device of `tensor`; `storage` stays -1.
JointResult joint_result(const at::Tensor& tensor);

}  // namespace plumbline::partition

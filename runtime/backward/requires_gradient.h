// requires_grad for tensors that may be undefined.
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline::backward {

/// Whether `tensor` requires a gradient; false for an undefined tensor.
inline bool requires_gradient(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

}  // namespace plumbline::backward

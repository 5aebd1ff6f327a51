#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline {

/// Also of a tensor that may be undefined.
inline bool requires_gradient(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

}  // namespace plumbline

// Whether a gradient flows through a tensor just made.
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline::capture {

/// A view made without gradients says that it requires one (because its base does), and has none.
inline bool takes_gradient(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return false;
  return !tensor.is_view() || tensor.grad_fn() || !tensor._base().requires_grad();
}

}  // namespace plumbline::capture

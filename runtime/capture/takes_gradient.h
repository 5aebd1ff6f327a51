// Whether a gradient flows through a new tensor.
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline::capture {

/// Whether `tensor`, which must be defined, gets a gradient. Differs from requires_grad for a view made without
/// gradients: such a view reports requires_grad because its base has it, but gets no gradient.
inline bool takes_gradient(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return false;
  return !tensor.is_view() || tensor.grad_fn() || !tensor._base().requires_grad();
}

}  // namespace plumbline::capture

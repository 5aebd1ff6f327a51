// Whether a fault changed a tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstring>

namespace plumbline::conformance {

/// Both undefined; or the same form, bytes, and need of a gradient.
inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.is_same(b)) return true;
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.requires_grad() != b.requires_grad())
    return false;
  const at::Tensor left = a.detach().contiguous(), right = b.detach().contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

}  // namespace plumbline::conformance

// Bitwise comparison of tensors on the CPU, which detects whether a fault changed a tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstring>

#include "runtime/graph/host_tensors.h"

namespace plumbline::conformance {

/// True if both tensors are undefined, or if their dtype, shape, requires_grad and elements (as bytes) are equal.
inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.is_same(b)) return true;
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.requires_grad() != b.requires_grad())
    return false;
  const at::Tensor left = graph::with_own_values(a.detach()).contiguous(),
                   right = graph::with_own_values(b.detach()).contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

}  // namespace plumbline::conformance

// Bitwise comparison of tensors on the CPU, which detects whether a fault changed a tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/graph/equal_bits.h"

namespace plumbline::conformance {

/// True if both tensors are undefined, or if their dtype, shape, requires_grad and elements (as bytes) are equal.
inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.is_same(b)) return true;
  return a.requires_grad() == b.requires_grad() && graph::have_equal_bits(a, b);
}

}  // namespace plumbline::conformance

// Bitwise comparison of tensors: by value, -0.0 would equal 0.0, and a NaN would differ from itself.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstring>

#include "runtime/graph/host_tensors.h"

namespace plumbline::graph {

/// Whether two defined, strided tensors, on any devices, have the same dtype, sizes and elements (as bytes).
inline bool have_equal_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = with_own_values(a.detach()).cpu().contiguous(),
                   right = with_own_values(b.detach()).cpu().contiguous();
  return left.nbytes() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

}  // namespace plumbline::graph

// For tests: random tensors that require gradients.
#pragma once

#include <ATen/ops/randn.h>

namespace plumbline::testing {

/// A leaf of autograd's graph with normally distributed values.
inline at::Tensor leaf(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::randn(sizes).to(dtype).requires_grad_(true);
}

}  // namespace plumbline::testing

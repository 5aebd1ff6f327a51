// The sum of gradients in the oracles.
#pragma once

#include <ATen/ops/add.h>

namespace plumbline::reference {

/// Undefined counts as zero. Never in place: autograd gives several leaves one memory where it reached them through
/// views, and an addition to one of them then changes all (github.com/pytorch/pytorch/issues/34082).
inline at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return at::add(a, b);
}

}  // namespace plumbline::reference

// The sum of gradients, as the oracles compute it.
#pragma once

#include <ATen/ops/add.h>

namespace plumbline::reference {

/// The sum of two gradients, of which an undefined one counts as zero: the result may be `a` or `b` itself. Never in
/// place: autograd may give several leaves the same memory when it reached them through views; adding to one of them in
/// place would then change all (github.com/pytorch/pytorch/issues/34082).
inline at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return at::add(a, b);
}

}  // namespace plumbline::reference

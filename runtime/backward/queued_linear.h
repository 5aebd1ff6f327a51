// A linear layer as one autograd node that knows about halves.
//
// Autograd records two or three nodes for a linear layer (the product, the transposed weight, for more dimensions the
// views around it), and the cut (cut.h) hooks, captures and walks each of them. Where layers are so small that this is
// a large part of a backward, one node that keeps its own gradient for the second half is less work.
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline {

/// at::linear(x, weight, bias), with the same bits forwards and backwards: the node calls the operators that autograd's
/// formulas for it call. `bias` may be undefined. Falls back to at::linear where there is more to it: anything but a
/// 2-D weight in row order and an input of two dimensions, or of three in row order; sparse, complex or mixed types; an
/// autocast region.
at::Tensor queued_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plumbline

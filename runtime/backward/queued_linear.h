// A linear layer as one autograd node that supports the split backward.
//
// Autograd records two or three nodes for a linear layer (the product, the transposed weight, for more dimensions the
// views around it), and the cut (cut.h) hooks, captures and walks each of them. For layers so small that this is a
// large part of a backward, one node whose weight gradient waits for the second half costs less.
//
// Measured with plumbline-bench micro, queued_linear_backward (layers of linear with bias and relu, one thread of a
// shared two-core machine; paired ratios of two runs, which differ by at most 4 % but in the last row):
//
//   rows x width, layers | full, us | halves/full | queued halves/full | halves/queued halves
//   16 x 16, 8           |      162 |        0.87 |               0.73 |                 1.20
//   64 x 64, 8           |      272 |        0.94 |               0.85 |                 1.11
//   64 x 128, 8          |      670 |        0.96 |               1.00 |                1.046
//   128 x 256, 8         |     3600 |        1.02 |               1.01 |                 1.01
//   512 x 1024, 6        |   220000 |        1.01 |    noise of +-10 % |      noise of +-10 %
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline::backward {

/// The largest product of rows, input width and output width for which a single-node layer saves more than 5 % of a
/// backward in halves; see above. Larger layers are plain linear layers.
inline constexpr int64_t kLargestQueuedProduct = int64_t{1} << 19;

/// at::linear(x, weight, bias), with the same bits forwards and backwards: the node calls the operators of autograd's
/// formulas. `bias` may be undefined. Falls back to at::linear for anything but a 2-D weight in row order and an input
/// of two dimensions, or of three in row order; for sparse, complex or mixed types; in an autocast region; for a
/// product above kLargestQueuedProduct. For use in a model's forward: the runtime never calls it itself.
at::Tensor queued_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plumbline::backward

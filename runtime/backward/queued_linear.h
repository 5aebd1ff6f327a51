// A linear layer as one autograd node that knows about halves.
//
// Autograd records two or three nodes for a linear layer (the product, the transposed weight, for more dimensions the
// views around it), and the cut (cut.h) hooks, captures and walks each of them. Where layers are so small that this is
// a large part of a backward, one node whose gradient waits for the second half is less work.
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

/// Rows times input width times output width up to which a layer of one node saves more than 5 % of a backward in
/// halves; see above. Larger ones are plain linear layers.
inline constexpr int64_t kLargestQueuedProduct = int64_t{1} << 19;

/// at::linear(x, weight, bias), with the same bits forwards and backwards: the node calls the operators that autograd's
/// formulas for it call. `bias` may be undefined. Falls back to at::linear where there is more to it: anything but a
/// 2-D weight in row order and an input of two dimensions, or of three in row order; sparse, complex or mixed types; an
/// autocast region; a product above kLargestQueuedProduct. For use in a model's forward: nothing calls it by itself.
at::Tensor queued_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plumbline::backward

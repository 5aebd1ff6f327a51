// A linear layer as one autograd node that supports the split backward.
//
// Autograd records two or three nodes for a linear layer (the product, the transposed weight, views for an input of
// more dimensions), and the cut (split/cut.h) walks and hooks each of them. For small layers this overhead is a large
// part of a backward; one node whose weight gradient waits for the second half costs less.
//
// Measured with plumbline-bench micro, queued_linear_backward (layers of linear with bias and relu, one thread of a
// shared two-core machine; "full" is the full backward; paired ratios of two runs, which differ by at most 4 % except
// in the last row):
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

/// The largest rows x input width x output width for which a single-node layer saves more than 5 % of a backward in
/// halves (see the table above).
inline constexpr int64_t kLargestQueuedProduct = int64_t{1} << 19;

/// Returns at::linear(x, weight, bias), with the same bits in forward and backward: the node calls the operators of
/// autograd's formulas. `bias` may be undefined.
///
/// Calls at::linear itself unless a gradient is recorded, `weight` is 2-D and contiguous, `x` is not empty and either
/// 2-D or 3-D and contiguous, all tensors are dense and of one floating-point type, no autocast region is active, and
/// the product is at most kLargestQueuedProduct. For use in a model's forward: the runtime never calls it.
at::Tensor queued_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plumbline::backward

// Recompute (activation checkpointing): a block of a stage keeps its inputs instead of autograd's saved values, and
// runs again in its backward.
//
// After Chen et al., "Training deep nets with sublinear memory cost" (arXiv 1604.06174), and torchgpipe's checkpointing
// (arXiv 2004.09910). The block's node cooperates with the split backward: I (the input half) runs the block again and
// computes the gradients of its inputs, W (the weight half) continues from there. So the block's forward runs twice in
// all, even if the backward is split.
//
// Gradients equal those without recompute bitwise, with one exception. The contributions of a block to the gradient of
// an input or parameter are summed inside the block and arrive outside as one summand; so bits may differ for a tensor
// that one block uses at least twice and that is also used outside of that block.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace plumbline::backward {

/// Writes the outputs computed from `values`: the inputs, then the parameters. Called once under no_grad and again in
/// each backward, on detached tensors in place of `values`; every call must compute the same results, random draws
/// included. A block must not change `values` in place, and every tensor that requires a gradient must be among them.
using Block = std::function<void(std::span<const at::Tensor> values, std::vector<at::Tensor>& outputs)>;

/// Runs `block` and writes its outputs, differentiable with respect to those `inputs` and `parameters` that require a
/// gradient. Autograd saves only the two lists; entries may be undefined. Outputs of a floating-point or complex type
/// require a gradient, others do not. If gradients are off, or no input or parameter requires one, calls `block`
/// directly.
///
/// Until the backward, inputs, parameters and outputs that share memory with another output must not change in place:
/// otherwise the backward throws. Throws InputError if the block changes one of its values in place, and inside an
/// autocast region (enter the region in the block, since the backward runs outside of it). The backward throws Error if
/// the number, dtypes or shapes of the block's outputs differ from the first run (values are not compared), if the
/// block uses a tensor that requires a gradient and is in neither list, and under create_graph.
void recompute_in_backward(Block block, std::span<const at::Tensor> inputs, std::span<const at::Tensor> parameters,
                           std::vector<at::Tensor>& outputs);

/// Returns a block whose later calls draw the same random numbers as its first call. The first call saves the state of
/// the device's generator, and sets it anew as later calls do; each later call runs in a RandomTurn that starts from
/// this state and must not be inside another turn (a backward never is). For blocks that draw random numbers; make a
/// separate one for each recompute_in_backward().
Block with_same_random_numbers(Block block, c10::Device device = c10::kCPU);

}  // namespace plumbline::backward

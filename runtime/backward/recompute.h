// Re-computation (activation checkpointing): a block of a stage keeps its inputs instead of what autograd saves, and is
// run again when its backward comes.
//
// After Chen et al., "Training deep nets with sublinear memory cost" (arXiv 1604.06174), and torchgpipe's checkpointing
// (arXiv 2004.09910). The block's node cooperates with the split backward: I runs the block again and makes the
// gradients of its inputs, W goes on from there, so the block is computed twice in all, also in halves.
//
// Gradients have the bits of the backward without re-computation, as long as what flows into one tensor is added up in
// the same order: what a block contributes to the gradient of one of its inputs or parameters is summed inside the
// block, and arrives outside as one summand. So bits may differ for a tensor that one block uses twice or more and that
// is used outside of that block as well.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace plumbline::backward {

/// Computes the outputs from `values`: the inputs, then the parameters. Called once under no_grad and once more in the
/// backward, with detached leaves in place of both; must do the same each time, draws of random numbers included. It
/// may not change `values` in place, and every tensor that requires a gradient must come to it through them.
using Block = std::function<void(std::span<const at::Tensor> values, std::vector<at::Tensor>& outputs)>;

/// The outputs of `block`, differentiable in those of `inputs` and `parameters` that require a gradient, without
/// anything saved but the two lists. `outputs` that are not floating point require no gradient; all others do. With
/// gradients off, or when nothing requires one, it is a plain call.
///
/// Inputs and parameters may not change in place before the backward, and outputs that share memory may not at all:
/// the backward says so when they did. Throws InputError when the block itself changed one, or runs inside an autocast
/// region (which belongs into the block, since the backward is outside of it). In the backward an Error comes when the
/// block made something else than at first, used a tensor that requires a gradient and is in neither list, and when a
/// gradient of a gradient is asked for.
void recompute_in_backward(Block block, std::span<const at::Tensor> inputs, std::span<const at::Tensor> parameters,
                           std::vector<at::Tensor>& outputs);

/// `block`, drawing in its later calls what it drew in the first: keeps the state of the CPU generator as the first
/// call finds it, and makes each later one in a RandomTurn from there, which must therefore not lie in another turn
/// (a backward never does). The first call may. For blocks that draw; give each recompute_in_backward() its own.
Block with_same_random_numbers(Block block);

}  // namespace plumbline::backward

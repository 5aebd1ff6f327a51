// Re-computation (activation checkpointing): a block of a stage keeps its inputs instead of what autograd saves, and is
// run again when its backward comes.
//
// After Chen et al., "Training deep nets with sublinear memory cost" (arXiv 1604.06174), and torchgpipe's checkpointing
// (arXiv 2004.09910). The block's node cooperates with the split backward: I runs the block again and makes the
// gradients of its inputs, W goes on from there, so the block is computed twice in all, also in halves.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace plumbline {

/// Computes the outputs from `values`: the inputs, then the parameters. Called once under no_grad and once more in the
/// backward, with detached leaves in place of both; must do the same each time, draws of random numbers included.
using Block = std::function<void(std::span<const at::Tensor> values, std::vector<at::Tensor>& outputs)>;

/// The outputs of `block`, differentiable in those of `inputs` and `parameters` (leaves) that require a gradient,
/// without anything saved but the two lists. `outputs` that are not floating point require no gradient. With gradients
/// off, or when nothing requires one, it is a plain call.
void recompute_in_backward(Block block, std::span<const at::Tensor> inputs, std::span<const at::Tensor> parameters,
                           std::vector<at::Tensor>& outputs);

}  // namespace plumbline

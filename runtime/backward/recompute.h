// Recompute (activation checkpointing): a block of a stage keeps its inputs instead of autograd's saved values, and
// runs again in its backward.
//
// After Chen et al., "Training deep nets with sublinear memory cost" (arXiv 1604.06174), and torchgpipe's checkpointing
// (arXiv 2004.09910). The block's node cooperates with the split backward: I runs the block again and computes the
// gradients of its inputs, W continues from there. So the block is computed twice in all, even in halves.
//
// Gradients equal those without recompute bitwise, as long as the contributions to one tensor are added in the same
// order: the contributions of a block to the gradient of one of its inputs or parameters are summed inside the block,
// and arrive outside as one summand. So bits may differ for a tensor that one block uses twice or more and that is also
// used outside of that block.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace plumbline::backward {

/// Computes the outputs from `values`: the inputs, then the parameters. Called once under no_grad and once more in the
/// backward, with detached leaves in place of both; it must compute the same each time, random draws included. It may
/// not change `values` in place, and every tensor that requires a gradient must be among them.
using Block = std::function<void(std::span<const at::Tensor> values, std::vector<at::Tensor>& outputs)>;

/// The outputs of `block`, differentiable in those of `inputs` and `parameters` that require a gradient; only the two
/// lists are saved. `outputs` that are not floating point require no gradient; all others do. With gradients off, or
/// when nothing requires one, it is a plain call.
///
/// Inputs and parameters may not change in place before the backward, and outputs that share memory may not change at
/// all: the backward throws if they did. Throws InputError when the block itself changed one, or runs inside an
/// autocast region (which belongs inside the block, since the backward runs outside of it). The backward throws Error
/// when the block's results differ from the first run, when it used a tensor that requires a gradient and is in neither
/// list, and when a gradient of a gradient is requested.
void recompute_in_backward(Block block, std::span<const at::Tensor> inputs, std::span<const at::Tensor> parameters,
                           std::vector<at::Tensor>& outputs);

/// `block`, whose later calls draw the same random numbers as the first: it keeps the state of the CPU generator at the
/// first call and makes each later call in a RandomTurn from there. Later calls must therefore not be inside another
/// turn (a backward never is); the first call may be. For blocks that draw; give each recompute_in_backward() its own.
Block with_same_random_numbers(Block block);

}  // namespace plumbline::backward

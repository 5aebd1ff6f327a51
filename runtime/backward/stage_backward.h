// The full backward of one stage, after `_backward.py` of PyTorch's torch.distributed.pipelining.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <vector>

namespace plumbline::backward {

/// Runs autograd from `roots` with `root_grads` (one per root), adds into the .grad of every leaf that it reaches
/// (parameters, and the stage's inputs), and frees the graph. Then moves the .grad of each input to its slot in
/// `input_grads` and leaves .grad undefined, so that the memory is freed as soon as the gradient is sent. A slot is
/// undefined if no gradient arrived, for an input that is not a leaf, and for the repetition of an earlier input.
///
/// Roots that require no gradient are omitted. An undefined root gradient means 1 and is only allowed for a tensor of
/// one element (a loss). Throws Error with the shapes of roots, gradients and inputs if a gradient does not fit its
/// root, if no root remains, or if autograd fails.
void stage_backward(std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                    std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads);

/// The same for nested outputs, as PyTorch's pipelining takes them: `output` is a tensor, a tuple, list or string-keyed
/// dict of outputs, or any other value (ignored). `output_grad` has the same structure; None in place of a tuple, list
/// or dict omits all its tensors, and None in place of a tensor means 1. Returns one slot per input, undefined also for
/// an input that is not a tensor.
std::vector<at::Tensor> stage_backward(const c10::IValue& output, const c10::IValue& output_grad,
                                       const std::vector<c10::IValue>& inputs);

}  // namespace plumbline::backward

// The full backward of one stage, after the seed `_backward.py` of PyTorch's torch.distributed.pipelining.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <vector>

namespace plumbline::backward {

/// Runs autograd from `roots` with `root_grads` and adds into the .grad of every leaf that it reaches (parameters, and
/// the stage's inputs). Then moves the inputs' gradients to `input_grads`, one slot per input, undefined if none
/// arrived, and leaves the inputs' .grad empty, so that the memory is freed as soon as the gradient is sent.
///
/// Roots that require no gradient are left out. An undefined root gradient means 1 and is only allowed for a scalar (a
/// loss). Throws Error with shapes of outputs, gradients and inputs when no root is left or autograd fails.
void stage_backward(std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                    std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads);

/// The same for nested outputs, as in the seed: `output` is a tensor, a tuple, a list, a string-keyed dict of such, or
/// anything else (ignored); `output_grad` has the same structure, where None prunes a whole tuple, list or dict (and
/// means 1 for a tensor). Returns one slot per input, empty for an input that is no tensor or has no gradient.
std::vector<at::Tensor> stage_backward(const c10::IValue& output, const c10::IValue& output_grad,
                                       const std::vector<c10::IValue>& inputs);

}  // namespace plumbline::backward

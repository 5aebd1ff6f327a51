// The roots of a backward: the gradient edges of a stage's outputs (or loss), and the gradients that flow into them.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/function.h>

#include <span>
#include <string>
#include <vector>

namespace plumbline::backward {

/// The roots of a backward and their gradients: parallel lists.
struct Roots {
  std::vector<at::Tensor> tensors;   ///< outputs (or the loss) that require a gradient
  torch::autograd::edge_list edges;  ///< one per tensor
  std::vector<at::Tensor> grads;     ///< one per tensor, all defined

  bool empty() const { return tensors.empty(); }
};

/// Pairs each root with its gradient: `grads` has one entry per root. Omits roots that are undefined or require no
/// gradient. An undefined gradient counts as 1 if the root has one element and was not released (released_output.h).
/// Throws Error naming the tensor for a gradient of another shape and for any other missing gradient.
Roots gather_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> grads);

/// The same for nested outputs, as stage_backward() takes them. Also throws Error if the structures differ.
Roots gather_roots(const c10::IValue& output, const c10::IValue& output_grad);

/// Returns one tensor per value: undefined for a value that is not a tensor.
std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& values);

/// Throws Error: "Failed to run <half>: <text of `error`>; stage output: ..., output gradient: ..., input: ...". The
/// last three arguments are results of debug_text().
[[noreturn]] void throw_backward_failure(const char* half, const std::exception& error, const std::string& outputs,
                                         const std::string& grads, const std::string& inputs);

/// Dtypes and shapes for an error: "(f32[2,3]*, undefined)". A star marks a tensor that requires a gradient.
std::string debug_text(std::span<const at::Tensor> tensors);
std::string debug_text(const c10::IValue& value);
std::string debug_text(const std::vector<c10::IValue>& values);

}  // namespace plumbline::backward

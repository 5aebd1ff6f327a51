// The start of a backward: the gradient edges of a stage's outputs (or loss), and the gradients that flow into them.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/function.h>

#include <span>
#include <string>
#include <vector>

namespace plumbline::backward {

struct Roots {
  std::vector<at::Tensor> tensors;   ///< those that require a gradient
  torch::autograd::edge_list edges;  ///< one for each of them
  std::vector<at::Tensor> grads;     ///< likewise, all defined

  bool empty() const { return tensors.empty(); }
};

/// Leaves out roots that require no gradient, checks shapes, and uses 1 for a scalar without a gradient. Throws Error,
/// without the shapes of the whole call, for a gradient of another shape and for a missing one.
Roots gather_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> grads);

/// The same for nested outputs; see stage_backward().
Roots gather_roots(const c10::IValue& output, const c10::IValue& output_grad);

/// The tensors among `values`, with undefined ones in place of anything else.
std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& values);

/// Rethrows `error` as an Error with the failed half and all shapes; a star means "requires a gradient". Only call it
/// while `error` is handled.
[[noreturn]] void throw_backward_failure(const char* half, const std::exception& error, const std::string& outputs,
                                         const std::string& grads, const std::string& inputs);

std::string debug_text(std::span<const at::Tensor> tensors);
std::string debug_text(const c10::IValue& value);
std::string debug_text(const std::vector<c10::IValue>& values);

}  // namespace plumbline::backward

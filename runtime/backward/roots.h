// Where a backward begins: the gradient edges of a stage's outputs (or loss), and the gradients that flow into them.
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

/// Leaves out what requires no gradient, checks shapes, and fills in 1 where a scalar has no gradient. Throws Error,
/// without the shapes of the whole call, for a gradient of another shape and for one that is missing.
Roots gather_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> grads);

/// The same for nested outputs; see stage_backward().
Roots gather_roots(const c10::IValue& output, const c10::IValue& output_grad);

/// The tensors among `values`, undefined ones in the place of anything else.
std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& values);

/// Rethrows `error` as an Error that tells which half failed and all shapes; a star stands for "requires a gradient".
/// Only called while `error` is handled.
[[noreturn]] void throw_backward_failure(const char* half, const std::exception& error, const std::string& outputs,
                                         const std::string& grads, const std::string& inputs);

std::string debug_text(std::span<const at::Tensor> tensors);
std::string debug_text(const c10::IValue& value);
std::string debug_text(const std::vector<c10::IValue>& values);

}  // namespace plumbline::backward

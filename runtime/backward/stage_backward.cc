#include "runtime/backward/stage_backward.h"

#include <torch/csrc/autograd/engine.h>

#include "runtime/backward/roots.h"
#include "runtime/error.h"

namespace plumbline::backward {
namespace {

constexpr const char* kName = "stage backward";

/// Runs autograd, without the debug message.
void run(const Roots& roots, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) {
  if (roots.empty()) throw Error("no output requires a gradient");
  torch::autograd::Engine::get_default_engine().execute(roots.edges, roots.grads, /*keep_graph=*/false,
                                                        /*create_graph=*/false, /*accumulate_grad=*/true);
  input_grads.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_grads[i] = at::Tensor();
    if (!inputs[i].defined() || !inputs[i].is_leaf()) continue;
    input_grads[i] = std::move(inputs[i].mutable_grad());
    inputs[i].mutable_grad() = at::Tensor();
  }
}

}  // namespace

void stage_backward(std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                    std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) {
  PLUMBLINE_CHECK(roots.size() == root_grads.size(),
                  std::to_string(roots.size()) + " roots, " + std::to_string(root_grads.size()) + " gradients");
  try {
    run(gather_roots(roots, root_grads), inputs, input_grads);
  } catch (const std::exception& error) {
    throw_backward_failure(kName, error, debug_text(roots), debug_text(root_grads), debug_text(inputs));
  }
}

std::vector<at::Tensor> stage_backward(const c10::IValue& output, const c10::IValue& output_grad,
                                       const std::vector<c10::IValue>& inputs) {
  std::vector<at::Tensor> input_grads;
  try {
    run(gather_roots(output, output_grad), tensors_of(inputs), input_grads);
  } catch (const std::exception& error) {
    throw_backward_failure(kName, error, debug_text(output), debug_text(output_grad), debug_text(inputs));
  }
  return input_grads;
}

}  // namespace plumbline::backward

#include "runtime/engine/graph_stage.h"

#include <algorithm>

#include "runtime/backward/stage_backward.h"
#include "runtime/graph/random_turn.h"
#include "runtime/microbatch/random_seed.h"

namespace plumbline {

GraphStage::GraphStage(int stage, const std::vector<const Graph*>& graphs, std::vector<int> variants,
                       const RandomContext& random)
    : stage_(stage), variants_(std::move(variants)), weights_(variants_.size()), random_(random) {
  for (const Graph* graph : graphs) {
    interpreters_.emplace_back(*graph);
    draws_random_numbers_ =
        draws_random_numbers_ || std::any_of(graph->nodes.begin(), graph->nodes.end(), &draws_random_numbers);
  }
}

void GraphStage::forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) {
  Interpreter& interpreter = interpreters_[variants_[microbatch]];
  if (!draws_random_numbers_) {
    interpreter.run(inputs, outputs);
    return;
  }
  const RandomTurn seeded(random_.by_microbatch
                              ? random_.run_seed + static_cast<uint64_t>(microbatch)
                              : stage_random_seed(random_.run_seed, random_.step, stage_, microbatch));
  interpreter.run(inputs, outputs);
}

void GraphStage::backward(int, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                          std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) {
  stage_backward(roots, root_grads, inputs, input_grads);
}

void GraphStage::backward_input(int microbatch, std::span<const at::Tensor> roots,
                                std::span<const at::Tensor> root_grads, std::span<const at::Tensor> inputs,
                                std::vector<at::Tensor>& input_grads) {
  stage_backward_input(roots, root_grads, inputs, input_grads, weights_[microbatch], {.accumulate_into_inputs = false});
}

void GraphStage::backward_weight(int microbatch) { stage_backward_weight(weights_[microbatch]); }

void GraphStage::drop_halves() noexcept {
  for (WeightBackward& weights : weights_)
    if (weights.pending()) weights = WeightBackward();
}

}  // namespace plumbline

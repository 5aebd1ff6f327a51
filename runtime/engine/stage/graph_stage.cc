#include "runtime/engine/stage/graph_stage.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/backward/stage_backward.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/microbatch/random_seed.h"

namespace plumbline::engine {

GraphStage::GraphStage(int stage, const std::vector<const graph::Graph*>& graphs, std::vector<int> variants,
                       const RandomContext& random, const RecomputeOptions& recompute,
                       std::unique_ptr<PartitionedStage> partitions)
    : stage_(stage),
      partitions_(std::move(partitions)),
      variants_(std::move(variants)),
      weights_(variants_.size()),
      random_(random),
      recompute_(recompute.policy) {
  for (const graph::Graph* graph : graphs) {
    frames_.emplace_back(graph::Program(*graph));
    if (recompute_ != Recompute::Never) blocks_.emplace_back(*graph, recompute.blocks_in, random.device);
    draws_random_numbers_ =
        draws_random_numbers_ || std::any_of(graph->nodes.begin(), graph->nodes.end(), &graph::draws_random_numbers);
  }
}

bool GraphStage::recomputes(int microbatch) const {
  const bool is_last = microbatch + 1 == static_cast<int>(variants_.size());
  return c10::GradMode::is_enabled() &&
         (recompute_ == Recompute::Always || (recompute_ == Recompute::ExceptLast && !is_last));
}

void GraphStage::forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) {
  const int variant = variants_[microbatch];
  partition::PartitionedGraph* const partition =
      partitions_ && c10::GradMode::is_enabled() ? partitions_->of(variant, inputs) : nullptr;
  const auto run = [&] {
    if (partition)
      partition->run(inputs, outputs);
    else if (recomputes(microbatch))
      blocks_[variant].run(inputs, outputs);
    else
      frames_[variant].run(inputs, outputs);
  };
  if (!draws_random_numbers_) return run();
  const graph::RandomTurn seeded(
      random_.by_microbatch ? random_.run_seed + static_cast<uint64_t>(microbatch)
                            : microbatch::stage_random_seed(random_.run_seed, random_.step, stage_, microbatch),
      random_.device);
  run();
}

void GraphStage::backward(int, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                          std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) {
  backward::stage_backward(roots, root_grads, inputs, input_grads);
}

void GraphStage::backward_input(int microbatch, std::span<const at::Tensor> roots,
                                std::span<const at::Tensor> root_grads, std::span<const at::Tensor> inputs,
                                std::vector<at::Tensor>& input_grads) {
  backward::stage_backward_input(roots, root_grads, inputs, input_grads, weights_[microbatch],
                                 {.accumulate_into_inputs = false});
}

void GraphStage::backward_weight(int microbatch) { backward::stage_backward_weight(weights_[microbatch]); }

void GraphStage::drop_halves() noexcept {
  for (backward::WeightBackward& weights : weights_)
    if (weights.pending()) weights = backward::WeightBackward();
}

}  // namespace plumbline::engine

// GraphStage: runs a stage of a Pipe by executing its graph.
#pragma once

#include <memory>

#include "runtime/backward/split/split_backward.h"
#include "runtime/engine/stage/partitioned_stage.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/engine/stage/stage_runner.h"
#include "runtime/graph/run/program.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// The numbers that seed a stage's random draws, independent of rank and order of execution; see random_seed.h.
struct RandomContext {
  uint64_t run_seed = 0;
  /// The number of training steps before this one.
  int64_t step = 0;
  /// Seed each micro-batch with run_seed + micro-batch instead (EngineOptions::seed_by_microbatch).
  bool by_microbatch = false;
  /// Whose default generator is seeded.
  c10::Device device = c10::kCPU;
};

class GraphStage : public StageRunner {
 public:
  /// `graphs` are the captures of the stage, one per distinct shape of micro-batch, bound to one state; `variants[m]`
  /// is the index of the capture for micro-batch m. `random` is read at each forward and must outlive this object.
  /// `partitions`, if not null, run in place of the graphs whenever gradients are recorded. A stage that draws random
  /// numbers runs its forward in a RandomTurn (random_turn.h).
  GraphStage(int stage, const std::vector<const graph::Graph*>& graphs, std::vector<int> variants,
             const RandomContext& random, const RecomputeOptions& recompute = {},
             std::unique_ptr<PartitionedStage> partitions = nullptr);

  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override;
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override;
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override;
  void backward_weight(int microbatch) override;
  void drop_halves() noexcept override;

 private:
  bool recomputes(int microbatch) const;

  int stage_;
  std::vector<graph::Frame> frames_;  // by variant
  std::vector<StageBlocks> blocks_;   // by variant; empty without recompute
  std::unique_ptr<PartitionedStage> partitions_;
  std::vector<int> variants_;
  std::vector<backward::WeightBackward> weights_;  // by micro-batch
  const RandomContext& random_;
  Recompute recompute_;
  bool draws_random_numbers_ = false;
};

}  // namespace plumbline::engine

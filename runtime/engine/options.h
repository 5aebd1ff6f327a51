// EngineOptions: the user's choices for an engine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/custom_function.h"
#include "runtime/engine/observer.h"
#include "runtime/engine/stage/partitioned_stage.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/engine/stage/stage_runner.h"
#include "runtime/microbatch/chunk_spec.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// A scalar loss from the model's outputs and the target of one micro-batch; in an evaluation it may be undefined.
using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const at::Tensor& target)>;

/// Computes the part of a stage's parameter gradients that a user's modules deferred; empty if there is none.
using WeightWork = std::function<void()>;

struct EngineOptions {
  std::vector<std::string> input_names;
  std::vector<microbatch::ChunkSpec> input_chunks;
  microbatch::ChunkSpec target_chunk;
  /// How merged_outputs() joins outputs; unlisted ones are joined along dimension 0.
  std::vector<microbatch::ChunkSpec> output_chunks;
  /// Without a loss a step ends with the outputs: there is no backward.
  LossFunction loss;
  /// The loss is a mean over the rows of its micro-batch.
  bool mean_loss = false;
  /// The number of elements over which a mean loss averages, given a micro-batch's target; micro-batches are weighted
  /// by it. For targets with ignored elements (padding). Without it, rows are the weight.
  std::function<int64_t(const at::Tensor& target)> mean_count;
  bool divide_by_microbatches = true;
  uint64_t seed = 0;
  /// Seed the generator with seed + micro-batch whenever a stage begins to draw, instead of differently for each step,
  /// stage and micro-batch: with a carried random state (SplitOptions) each micro-batch then draws the same numbers as
  /// the uncut model after torch::manual_seed(seed + micro-batch).
  bool seed_by_microbatch = false;
  bool keep_strides = false;
  RecomputeOptions recompute;
  /// Cannot be combined with `recompute`. Does not change bits.
  RematOptions remat;
  /// The limit of every single wait.
  transport::Clock::duration timeout = std::chrono::seconds(60);
  /// For modules that compute the gradients of their parameters themselves, apart from autograd (PyTorch's dw_builder):
  /// called once for each stage and micro-batch, right after autograd's backward. A B runs the work at once; an I is
  /// the full backward on every stage and keeps the work for the W, which then does nothing else. Not called if the
  /// loss does not depend on the stage. The work adds to .grad; gradients are not recorded during it. Outputs keep
  /// their memory until the backward, since a module's own backward might read them.
  std::function<WeightWork(int stage, int microbatch)> weight_work;
  /// Once all consumers have received a stage's output, only its place in the autograd graph is kept
  /// (released_output.h). Turned off for comparison: it changes memory, but no bits.
  bool release_outputs = true;
  /// Functions that execute actions of a kind in place of the engine.
  CustomFunctions custom;
  /// Record the time of every action (StepResult::trace).
  bool trace = false;
  EngineObserver* observer = nullptr;
  /// Replaces a stage's runner, or wraps it. `state` lives as long as the engine.
  std::function<std::unique_ptr<StageRunner>(int stage, const split::StageState& state, std::unique_ptr<StageRunner>)>
      decorate;
};

}  // namespace plumbline::engine

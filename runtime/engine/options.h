// EngineOptions: the user's choices for an engine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/custom_function.h"
#include "runtime/engine/observer.h"
#include "runtime/engine/offload/activation_store.h"
#include "runtime/engine/stage/partitioned_stage.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/engine/stage/stage_runner.h"
#include "runtime/microbatch/chunk_spec.h"
#include "runtime/microbatch/targets.h"
#include "runtime/schedule/lowering/replica_actions.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Computes the loss, a tensor of one element, from the model's outputs and the targets of one micro-batch; a function
/// for one target may read a const at::Tensor&. In an evaluation the result may be undefined. It may have parameters
/// that the model registers and SplitOptions::loss_parameters names: the function reads them in Engine::states(), in
/// the last stage, and the end of a step treats them as the stage's others. The loss of a micro-batch that leaves an
/// evaluation early (SplitOptions::exits_early) is computed where it leaves, on a rank that may lack them. A loss that
/// depends on any other tensor that requires a gradient is refused in the first step: an InputError.
using LossFunction =
    std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const microbatch::Targets& targets)>;

/// Computes the parameter gradients that a user's modules deferred in one backward; empty if there are none.
using WeightWork = std::function<void()>;

struct EngineOptions {
  /// Names of the model's inputs, in order, one for each: also of those that a model takes as *rest or **extra.
  std::vector<std::string> input_names;
  /// One per input.
  std::vector<microbatch::ChunkSpec> input_chunks;
  /// Of all targets.
  microbatch::ChunkSpec target_chunk;
  /// By output: how merged_outputs() joins its chunks; along dimension 0 for outputs beyond the end.
  std::vector<microbatch::ChunkSpec> output_chunks;
  /// Empty: a step computes the outputs and runs no backward.
  LossFunction loss;
  /// Applied to each local loss (split::LocalLoss) of a micro-batch before its backward. Empty: unchanged.
  std::function<at::Tensor(const at::Tensor& loss)> local_loss;
  /// The backward of every loss begins with this factor (loss scaling); the gradients keep it.
  double loss_scale = 1.0;
  /// Whether the loss is a mean over the rows of its micro-batch; micro-batches are then weighted by their rows, so
  /// that the result is the mean over the batch.
  bool mean_loss = false;
  /// Returns the divisor of a mean loss for a micro-batch's targets (there may be none), such as the number of its
  /// elements that are not ignored, or the sum of their weights; replaces the rows as weight. Empty: the rows of the
  /// last divided input. Used in training only. A micro-batch of 0 adds nothing to any gradient, whatever its loss
  /// (0/0, say).
  std::function<double(const microbatch::Targets& targets)> mean_count;
  /// Divide the summed gradients by the number of micro-batches at the end of the step.
  bool divide_by_microbatches = true;
  /// The run seed of all random draws (random_seed.h).
  uint64_t seed = 0;
  /// Seed the generator with seed + micro-batch before each stage's forward, instead of a seed per step, stage and
  /// micro-batch. With a carried random state (SplitOptions), each micro-batch then draws the same numbers as the uncut
  /// model after torch::manual_seed(seed + micro-batch).
  bool seed_by_microbatch = false;
  /// Pass tensors between stages with their strides instead of contiguous (tensor_transfer.h).
  bool keep_strides = false;
  RecomputeOptions recompute;
  /// Partitioned stages (partitioned_stage.h). Cannot be combined with `recompute`. Does not change bits.
  RematOptions remat;
  /// The actions of whole stages that are added to a schedule without any, if several ranks hold the same stage.
  schedule::ReplicaOptions replicas;
  /// Makes this rank's store for a schedule with OFFLOAD. Empty: file_store().
  MakeStore store;
  /// Where the stages compute. They are captured on the host; the parameters, buffers and constants of this rank's
  /// stages are then moved there. The batch must be there already, and the transport must accept messages in such
  /// memory. Not together with `remat`, OFFLOAD, and random state that travels (SplitOptions).
  c10::Device device = c10::kCPU;
  /// The limit of each single wait, for a message or for offloaded activations.
  transport::Clock::duration timeout = std::chrono::seconds(60);
  /// For modules that compute the gradients of their parameters themselves, apart from autograd (PyTorch's dw_builder):
  /// called once for each stage and micro-batch, right after autograd's backward, unless the loss does not depend on
  /// the stage. The returned work adds to .grad and runs under no_grad: at once in a B; an I runs the full backward on
  /// every stage and leaves the work to the W, which does nothing else. Outputs keep their memory until the backward,
  /// since a module's own backward might read them.
  std::function<WeightWork(int stage, int microbatch)> weight_work;
  /// Once all consumers have received a stage's output, keep only its place in the autograd graph (released_output.h).
  /// Turning this off increases memory and changes no bits.
  bool release_outputs = true;
  /// Functions that execute actions in place of the engine.
  CustomFunctions custom;
  /// Record the time of every action (StepResult::trace).
  bool trace = false;
  /// Not owned; must outlive the engine. Null: none.
  EngineObserver* observer = nullptr;
  /// Returns the runner to use for a stage, given the engine's runner (last argument). Called for each of this rank's
  /// stages whenever a plan is made. `state` lives as long as the engine. Empty: the engine's runner is used.
  std::function<std::unique_ptr<StageRunner>(int stage, const split::StageState& state, std::unique_ptr<StageRunner>)>
      decorate;
};

}  // namespace plumbline::engine

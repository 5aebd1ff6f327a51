// Engine: one rank executing its actions of a schedule, over a transport.
//
// A step divides the batch into micro-batches, executes the rank's ordered action list, and finishes the gradients. A
// step has the same result under every schedule:
//   - gradients of this step are summed over micro-batches in the order of the stage's B and W actions, copies of a
//     parameter are summed in ascending order of (stage, replica), the sum is divided by the number of micro-batches
//     once (or not, as requested), and only then added to the .grad of earlier steps. So steps accumulate, and an
//     evaluation between them changes nothing;
//   - a mean loss over uneven micro-batches is weighted, so that the result is the mean over the batch.
//
// A schedule of computations alone is lowered for the model's edges. An already lowered one, such as a CSV of PyTorch's
// compute_comms form, is checked against them and executed exactly: WAIT_SEND waits for that send only, a send without
// one is finished at the end of the step. The engine shards nothing over a data-parallel group, so UNSHARD, RESHARD,
// REDUCE_GRAD and WAIT_REDUCE_GRAD do nothing without a custom function (custom_function.h); gradients are not scaled
// before the end of the step. An evaluation executes the F, SEND_F, RECV_F, WAIT_SEND_F, UNSHARD and RESHARD of the
// list, in its order. The members of a group run one after another in the order of the list.
//
// With several replicas (Schedule::replica_of_microbatch) a rank has one copy of each stage that it holds, and executes
// the micro-batches that the schedule assigns to it there. Outputs and losses are on the ranks of the last stage. A
// model whose forward writes buffers is refused: no replica would see all micro-batches.
//
// A value and its gradient cross from stage to stage as contiguous tensors, even between stages of one rank: a kernel's
// order of summation depends on strides, and bits must not depend on the placement of stages. With `keep_strides` both
// keep their layout, so that bits equal those of the uncut model.
//
// A backward is whole (B) or in halves (I, later W; split_backward.h); a schedule may mix both. As in the seed, the I
// of a stage whose inputs need no gradient, such as the first, does nothing, and its W is the full backward.
//
// The lowered schedule decides when a receive is posted; sends never block; a waiting rank blocks. After an exception
// the step is discarded and gradients are restored (buffers that a forward wrote are not); the owner of the transport
// then aborts the other ranks. The text of an error in an action begins with its place in the rank's lowered list:
// "rank 1, position 4 (1B0): ...".
//
// Ranks compare the shapes of all boundary values when a list of micro-batch shapes is new to them. The caller ensures
// that every rank gets the same batch in each later step: a message of another size is refused, another shape of the
// same size goes unnoticed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/options.h"
#include "runtime/engine/plan/plan_cache.h"
#include "runtime/engine/step/step_buffers.h"
#include "runtime/engine/step_result.h"
#include "runtime/microbatch/chunk.h"

namespace plumbline::engine {

class Engine {
 public:
  /// Throws InputError for a schedule of another number of ranks, for one whose fields contradict one another, and for
  /// a custom function in place of a transfer. Every rank creates its engine with the same schedule, options and model.
  Engine(transport::Transport& transport, schedule::Schedule schedule, PipeSource source, EngineOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One forward and backward of a batch. Each rank passes the same batch: stage 0 reads the inputs, the last stage the
  /// target, and the others only their shapes. Throws InputError if the schedule does not fit the model: another number
  /// of stages, or violations (check.h) with the model's edges.
  StepResult train(const std::vector<at::Tensor>& inputs, const at::Tensor& target);

  /// The same with inputs by name, beside or in place of positional ones.
  StepResult train(const std::vector<at::Tensor>& positional, const std::map<std::string, at::Tensor>& keyword,
                   const at::Tensor& target);

  /// The same with a batch already divided. Throws InputError as check_microbatches() does.
  StepResult train(const microbatch::Microbatches& batch);

  /// The outputs of the whole batch, on the ranks that have a step's outputs (elsewhere empty). Throws InputError on a
  /// rank that has only those of its replica.
  std::vector<at::Tensor> merged_outputs(const StepResult& step) const;

  /// One forward without gradients, in evaluation mode.
  StepResult evaluate(const std::vector<at::Tensor>& inputs, const at::Tensor& target);
  StepResult evaluate(const microbatch::Microbatches& batch);

  void zero_grad();

  /// Call on every rank after requires_grad of the model's parameters, and of those in states(), has changed: drops the
  /// plans made for other gradients. Parameters, their gradients and buffers are kept.
  void forget_plans();

  /// Parameters and buffers of this rank's stages, under canonical names, as of the first step; ascending by stage.
  const std::map<int, split::StageState>& states() const { return context_.states; }

 private:
  StepResult run(bool training, const microbatch::Microbatches& batch);
  microbatch::Microbatches divided(const std::vector<at::Tensor>& inputs, const at::Tensor& target) const;

  EngineContext context_;
  PlanCache plans_;
  StepBuffers buffers_;
};

}  // namespace plumbline::engine

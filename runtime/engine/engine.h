// Engine: one rank executing its actions of a schedule, over a transport.
//
// A step divides the batch into micro-batches, executes the rank's ordered action list, and finishes the gradients.
// Whatever the schedule, a step means the same thing:
//   - gradients of this step are summed over micro-batches in the order of the stage's B and W actions, copies of a
//     parameter are summed in ascending order of (stage, replica), the sum is divided by the number of micro-batches
//     once (or not, as asked), and only then added to what earlier steps left in .grad. So steps accumulate, and an
//     evaluation between them changes nothing;
//   - a mean loss over uneven micro-batches is weighted, so that the result is the mean over the batch.
//
// A schedule of computations alone is lowered for the model's own edges. One that is lowered already, such as a CSV of
// PyTorch's compute_comms form, is checked against them and executed to the letter: WAIT_SEND waits for just that send,
// a send without one is finished at the end of the step. Nothing is divided over a data-parallel group here, so
// UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD do nothing unless a custom function does it (custom_function.h);
// gradients are not scaled before the end of the step. An evaluation executes the F, SEND_F, RECV_F, WAIT_SEND_F,
// UNSHARD and RESHARD of the list, in its order. The members of a group run one after another in the order of the list.
//
// With several replicas (Schedule::replica_of_microbatch) a rank has one copy of each stage that it holds, and takes
// the micro-batches that the schedule gives it there. Outputs and losses are on the ranks of the last stage. A model
// whose forward writes buffers is refused: no replica would see all micro-batches.
//
// A value crosses from stage to stage as a contiguous tensor, and so does its gradient, also between stages of one
// rank: the order in which a kernel adds up depends on strides, and bits must not depend on which rank holds which
// stage. With `keep_strides` both cross in the layout that they have, so that bits are those of the uncut model.
//
// A backward comes whole (B) or in halves (I, later W; split_backward.h), also mixed in one schedule. As in the seed,
// the I of a stage whose inputs want no gradient, such as the first, does nothing, and its W is the full backward.
//
// The lowered schedule decides when a receive is posted; sends never block; a waiting rank blocks. After an exception
// the step is gone and gradients are as before it (buffers that a forward wrote are not); the owner of the transport
// then aborts the other ranks. The text of an error in an action begins with its place in the rank's lowered list:
// "rank 1, position 4 (1B0): ...".
//
// Ranks compare the shapes of all boundary values when a list of micro-batch shapes is new to them. The caller ensures
// that every rank gets the same batch in each later step: another size of a message is refused, another shape of the
// same size is not noticed.
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
  /// a custom function in place of a transfer. Every rank makes its engine with the same schedule, options and model.
  Engine(transport::Transport& transport, schedule::Schedule schedule, PipeSource source, EngineOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One forward and backward of a batch. Each rank gives the same batch: stage 0 reads the inputs, the last stage the
  /// target, and the others only their shapes. Throws InputError where the schedule does not fit the model: another
  /// number of stages, or violations (check.h) given the model's edges.
  StepResult train(const std::vector<at::Tensor>& inputs, const at::Tensor& target);

  /// The same with inputs by name, beside or in place of positional ones.
  StepResult train(const std::vector<at::Tensor>& positional, const std::map<std::string, at::Tensor>& keyword,
                   const at::Tensor& target);

  /// The same with a batch already divided. Throws InputError as check_microbatches() does.
  StepResult train(const microbatch::Microbatches& batch);

  /// The outputs of the whole batch, where a step's outputs are (else empty). Throws InputError on a rank that has only
  /// those of its replica.
  std::vector<at::Tensor> merged_outputs(const StepResult& step) const;

  /// One forward without gradients, in evaluation mode.
  StepResult evaluate(const std::vector<at::Tensor>& inputs, const at::Tensor& target);
  StepResult evaluate(const microbatch::Microbatches& batch);

  void zero_grad();

  /// Call on every rank after requires_grad of the model's parameters, and of those in states(), has changed: plans
  /// made for other gradients are made anew. Parameters, their gradients and buffers stay.
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

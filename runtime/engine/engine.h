// Engine: one rank executing its actions of a schedule, over a transport.
//
// A step divides the batch into micro-batches, executes the rank's ordered action list, and finishes the gradients. Its
// result is the same under every schedule:
//   - gradients of this step are summed over micro-batches in the order of the stage's B and W actions, copies of a
//     parameter are summed in ascending order of (stage, replica), the sum is divided by the number of micro-batches
//     once (or not, as requested), and only then added to the .grad of earlier steps. So steps accumulate, and an
//     evaluation between them changes nothing;
//   - a mean loss over uneven micro-batches is weighted, so that the result is the mean over the batch.
//
// A schedule of computations alone is lowered: transfers are inserted for the model's stage edges. An already lowered
// schedule, such as a CSV of PyTorch's compute_comms form, is validated against these edges and executed exactly:
// WAIT_SEND waits for its send only, and a send without a WAIT_SEND is finished at the end of the step. An evaluation
// executes the F, SEND_F, RECV_F, WAIT_SEND_F, UNSHARD and RESHARD of the list, in its order. The members of a group
// compute one after another in the order of the list; their receives are posted before the first computes, and each
// result is sent as soon as its member has ended, before the next one computes, although its SEND stands after the
// group.
//
// With several replicas (Schedule::replica_of_microbatch) a rank has one copy of each stage that it holds, and executes
// the micro-batches that the schedule assigns to this copy. Outputs and losses are on the ranks of the last stage. A
// model whose forward writes buffers is refused, since no replica would see all micro-batches. The ranks that hold the
// same stage, in one pipeline or in data-parallel ones (orders/data_parallel.h), share it:
//   - REDUCE_GRAD begins the sum of its gradients over these ranks, and WAIT_REDUCE_GRAD waits for it. The sums of a
//     stage without REDUCE_GRAD, and of parameters that several stages use, are computed at the end of the step;
//   - UNSHARD begins to gather its parameters from these ranks, the next computation of the stage waits for them, and
//     RESHARD drops all but this rank's part (parameter_shards.h). Before a step with such actions and after it, the
//     parameters are whole. If such a step fails, they are lost, and the engine refuses further steps.
// On a rank that alone holds its stage, these four actions do nothing. EngineOptions::replicas adds them to a schedule
// without any.
//
// OFFLOAD moves what autograd keeps of a stage and micro-batch, and the stage's inputs from other stages, to a store
// outside the rank's memory (EngineOptions::store), and RELOAD brings it back, both beside the computations (the parts
// in offload/). Parameters, buffers and the batch stay. Bits do not change.
//
// A value and its gradient are passed between stages as contiguous tensors, even between stages of one rank: a kernel's
// order of summation depends on strides, and bits must not depend on the placement of stages. With `keep_strides` both
// keep their layout, so that bits equal the bits of the uncut model.
//
// A backward is whole (B) or in halves (I, later W; split_backward.h); a schedule may mix both. As in PyTorch's
// torch.distributed.pipelining, the I of a stage whose inputs need no gradient (the first stage) does nothing, and its
// W is the full backward.
//
// The lowered schedule decides when a receive is posted; sends never block; a waiting rank blocks. After an exception
// the step is discarded and gradients are restored (buffers that a forward wrote are not); the owner of the transport
// must then abort the other ranks. An error in an action begins with the action's place in the rank's lowered list:
// "rank 1, position 4 (1B0): ...". A PeerError keeps its text.
//
// Ranks compare the shapes of all boundary values whenever a list of micro-batch shapes is new to them. The caller must
// pass the same batch to every rank in every step: later, a message of another size throws Error, but another shape of
// the same size goes unnoticed.
//
// An engine belongs to one thread: the thread of its transport.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/gradient_norm.h"
#include "runtime/engine/options.h"
#include "runtime/engine/plan/plan_cache.h"
#include "runtime/engine/step/step_buffers.h"
#include "runtime/engine/step_result.h"
#include "runtime/microbatch/chunk.h"

namespace plumbline::engine {

class WholeInputs;

class Engine {
 public:
  /// Throws InputError for a schedule of another number of ranks, a schedule whose fields contradict one another, a
  /// custom function for a transfer, OFFLOAD or RELOAD, and invalid options (remat, device). Every rank creates its
  /// engine with the same schedule, options and model. `transport` must outlive the engine.
  Engine(transport::Transport& transport, schedule::Schedule schedule, PipeSource source, EngineOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One forward and backward of a batch; only the forward without a loss function. On the rank of stage 0 the
  /// gradients of inputs that are leaves and require gradients are added to their .grad, not divided by the number of
  /// micro-batches; for a replicated input, they are summed over the micro-batches. Each rank passes the same batch:
  /// stage 0 reads the inputs, the last stage the targets, and other stages only shapes. Throws InputError if the batch
  /// cannot be divided (chunk.h), if an input requires a gradient, is no leaf and is used by several micro-batches of a
  /// step with a backward, or if the schedule does not fit the model (another number of stages, violations of check.h
  /// with the model's edges); Error, TimeoutError or PeerError if an action or a transfer fails. Gradients are then as
  /// before. Ranks that are threads may give the same tensors, but ranks of several replicas of stage 0 need leaves of
  /// their own.
  StepResult train(const std::vector<at::Tensor>& inputs, const microbatch::Targets& targets);

  /// The same with inputs by name, beside or in place of positional inputs. Throws InputError as bind_inputs() does.
  StepResult train(const std::vector<at::Tensor>& positional, const std::map<std::string, at::Tensor>& keyword,
                   const microbatch::Targets& targets);

  /// The same with a batch that is already divided, whose micro-batches may differ in shape, and in which inputs
  /// require gradients. Throws InputError as check_microbatches() does.
  StepResult train(const microbatch::Microbatches& batch);

  /// Joins the outputs of a step's micro-batches along EngineOptions::output_chunks; empty on a rank without outputs.
  /// Throws InputError naming another rank if that one has the outputs of some micro-batches, of its replica or of its
  /// stage, which they left early; and as merge_outputs() does.
  std::vector<at::Tensor> merged_outputs(const StepResult& step) const;

  /// One forward of a batch in evaluation mode, without gradients; computes the loss if there is a loss function.
  /// Throws as train() does.
  StepResult evaluate(const std::vector<at::Tensor>& inputs, const microbatch::Targets& targets);
  StepResult evaluate(const microbatch::Microbatches& batch);

  /// Makes the .grad of all parameters in states() undefined.
  void zero_grad();

  /// The norm over all gradients of the pipeline (gradient_norm.h); every rank calls it.
  double gradient_norm(Norm norm) const;

  /// Drops all plans; call on every rank after requires_grad of parameters has changed, both in the model and in
  /// states(). Parameters, their gradients and buffers are kept.
  void forget_plans();

  /// Parameters and buffers of this rank's stages, by stage and canonical name; empty before the first step. An
  /// evaluation that all micro-batches leave early (split::Pipe::ends_early) adds only what they use; the first other
  /// step adds the rest.
  const std::map<int, split::StageState>& states() const { return context_.states; }

 private:
  StepResult run(bool training, const microbatch::Microbatches& batch, const WholeInputs* whole = nullptr);
  microbatch::Microbatches divided(const std::vector<at::Tensor>& inputs, const microbatch::Targets& targets) const;

  EngineContext context_;
  PlanCache plans_;
  StepBuffers buffers_;
};

}  // namespace plumbline::engine

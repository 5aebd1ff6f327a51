// Step: one step of one rank, from its batch to its results. A Step executes single actions; Execution (execution.h)
// decides their order.
#pragma once

#include <exception>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/plan/plan_cache.h"
#include "runtime/engine/replicas/gradient_sums.h"
#include "runtime/engine/step/courier.h"
#include "runtime/engine/step/step_buffers.h"
#include "runtime/engine/step/stopwatch.h"
#include "runtime/engine/step_result.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/microbatch/chunk.h"

namespace plumbline::engine {

class Step {
 public:
  /// All references must outlive the step. `buffers` must be empty; the destructor empties them again. `loss_weights`,
  /// indexed by micro-batch: the gradient from which the backward of its loss starts.
  Step(EngineContext& context, StepPlan& plan, StepBuffers& buffers, bool training,
       const microbatch::Microbatches& batch, std::vector<double> loss_weights);
  ~Step() { buffers_.clear(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  /// Executes one action of the rank; `substitute`, if not null, computes in place of the stage's runner. An exception
  /// of a computation becomes Error with stage and micro-batch, except InputError, which is rethrown unchanged.
  void execute(const schedule::Action& action, StageRunner* substitute = nullptr);

  /// Call before the first action: overwrites the parts of sharded parameters that other ranks have.
  void shard_parameters();

  /// Call after the last action: waits for the sends, gathers sharded parameters and makes the step's gradients final
  /// (sums over copies, division by the number of micro-batches).
  void finish();

  /// Call after an error: withdraws all transfers, so that none accesses the step's memory any more, and drops the
  /// state of first halves.
  void abandon() noexcept;

  const EngineContext& context() const { return context_; }
  const StepPlan& plan() const { return plan_; }
  Courier& courier() { return courier_; }
  StepResult& result() { return result_; }
  bool training() const { return training_; }
  const std::vector<at::Tensor>& inputs(int microbatch) const { return batch_.inputs.at(microbatch); }
  const microbatch::Targets& targets(int microbatch) const;
  StageRunner& runner(int stage) const { return *stage_of(stage).runner; }
  StepBuffers& buffers() { return buffers_; }

 private:
  /// StageRunner's backward() or backward_input().
  using Pass = decltype(&StageRunner::backward);

  void receive_forward(int stage, int microbatch);
  void forward(int stage, int microbatch);
  void send_forward(int stage, int microbatch);
  void receive_backward(int stage, int microbatch);
  void backward(int stage, int microbatch);
  void backward_input(int stage, int microbatch);
  void backward_weight(int stage, int microbatch);
  void send_backward(int stage, int microbatch);

  void require_parameters(const schedule::Action& action);
  void offload(int stage, int microbatch);
  bool is_offloaded(int stage, int microbatch) const {
    return !plan_.offloaded.empty() && plan_.offloaded[slot_of(stage, microbatch)];
  }
  transport::Deadline deadline() const { return transport::Deadline::after(context_.options.timeout); }

  void take_inputs(int stage, int microbatch);
  void separate_from_shards(int stage, int microbatch);
  void take_local_losses(int stage, int microbatch);
  void compute_loss(int stage, int microbatch);
  void require_own_leaves(const at::Tensor& loss, const std::string& name, int stage, int microbatch);
  const at::Tensor& live_output(const split::Boundary& boundary, int microbatch);
  void consumed(const split::Boundary& boundary, int microbatch);
  bool pass_back(int stage, int microbatch, Pass pass);
  at::Tensor output_gradient(int stage, int microbatch, int output);
  void finish_input_gradients(int stage, int microbatch);
  void give_input_gradients();
  void finish_parameter_gradients(int stage, int microbatch);

  /// Runs a stage's computation: the time counts as busy, and an error gets its position.
  template <class Work>
  void compute(int stage, int microbatch, Work&& work) {
    const Stopwatch busy(result_.times.busy);
    const SavedValues::Recording recording(is_offloaded(stage, microbatch) ? &state_of(stage, microbatch).saved
                                                                           : nullptr);
    try {
      work(substitute_ ? *substitute_ : runner(stage));
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(place(stage, microbatch) + ": " + graph::error_text(error));
    }
  }

  ParameterShards* shards_of(int stage) const { return stage_of(stage).shards.get(); }
  const StepPlan::Stage& stage_of(int stage) const { return plan_.stages[context_.index_of(stage)]; }
  MicrobatchState& state_of(int stage, int microbatch) { return buffers_.microbatches[slot_of(stage, microbatch)]; }
  size_t slot_of(int stage, int microbatch) const {
    return context_.index_of(stage) * context_.schedule.microbatches + microbatch;
  }

  EngineContext& context_;
  StepPlan& plan_;
  StepBuffers& buffers_;
  const bool training_;
  const microbatch::Microbatches& batch_;
  const std::vector<double> loss_weights_;
  Courier courier_;
  GradientSums sums_;
  StepResult result_;
  StageRunner* substitute_ = nullptr;
  double waiting_for_host_ = 0;
};

}  // namespace plumbline::engine

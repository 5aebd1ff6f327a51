#include "runtime/engine/step/step.h"

#include <algorithm>

#include "runtime/engine/gradients.h"

namespace plumbline::engine {

Step::Step(EngineContext& context, StepPlan& plan, StepBuffers& buffers, bool training,
           const microbatch::Microbatches& batch, std::vector<double> loss_weights)
    : context_(context),
      plan_(plan),
      buffers_(buffers),
      training_(training),
      batch_(batch),
      loss_weights_(std::move(loss_weights)),
      courier_(context, plan.plan.tag_count(), buffers.sends),
      sums_(context.states, plan.copies, context.transport, context.copy_tags()) {
  const int microbatches = context.schedule.microbatches;
  buffers_.microbatches.resize(context.stages.size() * microbatches);
  if (!plan.offloaded.empty() && !context.host)
    context.host = std::make_unique<HostTransfers>(context.options.store ? context.options.store() : file_store());
  if (context.options.trace) result_.trace.reserve(plan.actions.size());
  if (std::ranges::none_of(plan.plan.pipes, [&](const split::Pipe& pipe) {
        return std::ranges::find(context.stages, pipe.num_stages() - 1) != context.stages.end();
      }))
    return;
  result_.outputs.resize(microbatches);
  if (context.options.loss) result_.losses.resize(microbatches);
  if (std::ranges::any_of(plan.plan.pipes,
                          [&](const split::Pipe& pipe) { return pipe.num_stages() < context.schedule.stages; }))
    for (int m = 0; m < microbatches; ++m) result_.ended_with.push_back(plan.plan.pipe(m).num_stages() - 1);
}

void Step::execute(const schedule::Action& action, StageRunner* substitute) {
  substitute_ = substitute;
  const auto [stage, microbatch] = std::pair(action.stage, action.microbatch);
  if (schedule::is_compute(action.type)) {
    require_parameters(action);
    if (is_offloaded(stage, microbatch))
      context_.host->await_reload(stage, microbatch, state_of(stage, microbatch).stored, deadline(), waiting_for_host_);
  }
  switch (action.type) {
    case schedule::ActionType::RECV_F:
      return receive_forward(stage, microbatch);
    case schedule::ActionType::F:
      return forward(stage, microbatch);
    case schedule::ActionType::SEND_F:
      return send_forward(stage, microbatch);
    case schedule::ActionType::RECV_B:
      return receive_backward(stage, microbatch);
    case schedule::ActionType::B:
      return backward(stage, microbatch);
    case schedule::ActionType::SEND_B:
      return send_backward(stage, microbatch);
    case schedule::ActionType::I:
      return backward_input(stage, microbatch);
    case schedule::ActionType::W:
      return backward_weight(stage, microbatch);
    case schedule::ActionType::WAIT_SEND_F:
    case schedule::ActionType::WAIT_SEND_B:
      return courier_.wait_send(action);
    case schedule::ActionType::OFFLOAD:
      return offload(stage, microbatch);
    case schedule::ActionType::RELOAD:
      return context_.host->reload(stage, microbatch, state_of(stage, microbatch).stored);
    case schedule::ActionType::UNSHARD:
      if (shards_of(stage)) shards_of(stage)->begin_gather();
      return;
    case schedule::ActionType::RESHARD:
      if (shards_of(stage)) shards_of(stage)->shard(deadline());
      return;
    case schedule::ActionType::REDUCE_GRAD:
      return sums_.begin(stage);
    case schedule::ActionType::WAIT_REDUCE_GRAD:
      return sums_.finish(stage, deadline());
  }
}

void Step::shard_parameters() {
  for (const StepPlan::Stage& stage : plan_.stages)
    if (stage.shards) stage.shards->shard(deadline());
}

/// The list was validated, but a user's function may have taken the place of an UNSHARD.
void Step::require_parameters(const schedule::Action& action) {
  ParameterShards* shards = shards_of(action.stage);
  if (shards == nullptr) return;
  if (shards->is_sharded()) throw Error("the parameters of stage " + std::to_string(action.stage) + " are sharded");
  shards->finish_gather(deadline());
}

void Step::offload(int stage, int microbatch) {
  MicrobatchState& state = state_of(stage, microbatch);
  std::vector<at::Tensor> kept = batch_.inputs[microbatch];
  kept.insert(kept.end(), targets(microbatch).begin(), targets(microbatch).end());
  for (const auto* tensors : {&stage_of(stage).state->parameters, &stage_of(stage).state->buffers})
    for (const auto& [name, tensor] : *tensors) kept.push_back(tensor);
  if (context_.is_last(stage))
    kept.insert(kept.end(), result_.outputs[microbatch].begin(), result_.outputs[microbatch].end());
  context_.host->offload(stage, microbatch, state.saved, state.inputs, kept, state.stored);
}

void Step::finish() {
  courier_.finish_sends();
  result_.times.waiting = courier_.waiting() + waiting_for_host_;
  for (const StepPlan::Stage& stage : plan_.stages)
    if (stage.shards) stage.shards->begin_gather();
  for (const StepPlan::Stage& stage : plan_.stages)
    if (stage.shards) stage.shards->finish_gather(deadline());
  if (!plan_.backward) return;
  sums_.finish_all(deadline());
  if (context_.options.divide_by_microbatches) divide_gradients(context_.states, context_.schedule.microbatches);
  give_input_gradients();
  plan_.checked_losses = true;
}

void Step::abandon() noexcept {
  context_.transport.withdraw();
  buffers_.clear();
  context_.host.reset();
  for (const StepPlan::Stage& stage : plan_.stages) {
    stage.runner->drop_halves();
    if (stage.shards) stage.shards->abandon();
  }
}

const microbatch::Targets& Step::targets(int microbatch) const {
  static const microbatch::Targets none;
  return batch_.targets.empty() ? none : batch_.targets.at(microbatch);
}

}  // namespace plumbline::engine

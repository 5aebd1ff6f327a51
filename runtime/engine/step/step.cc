#include "runtime/engine/step/step.h"

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
      courier_(context, plan.plan.tag_count(), buffers.sends) {
  const int microbatches = context.schedule.microbatches;
  buffers_.microbatches.resize(context.stages.size() * microbatches);
  if (context.options.trace) result_.trace.reserve(plan.actions.size());
  if (context.stages.empty() || !context.is_last(context.stages.back())) return;
  result_.outputs.resize(microbatches);
  if (context.options.loss) result_.losses.resize(microbatches);
}

void Step::execute(const schedule::Action& action, StageRunner* substitute) {
  substitute_ = substitute;
  const auto [stage, microbatch] = std::pair(action.stage, action.microbatch);
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
    case schedule::ActionType::UNSHARD:
    case schedule::ActionType::RESHARD:
    case schedule::ActionType::REDUCE_GRAD:
    case schedule::ActionType::WAIT_REDUCE_GRAD:
      return;  // nothing is sharded over a data-parallel group
  }
}

void Step::finish() {
  courier_.finish_sends();
  result_.times.waiting = courier_.waiting();
  if (!plan_.backward) return;
  sum_copies(context_.states, plan_.copies, context_.transport, context_.transport.max_tag() - kCopyTags,
             transport::Deadline::after(context_.options.timeout));
  if (context_.options.divide_by_microbatches) divide_gradients(context_.states, context_.schedule.microbatches);
}

void Step::abandon() noexcept {
  context_.transport.withdraw();
  buffers_.clear();
  for (const StepPlan::Stage& stage : plan_.stages) stage.runner->drop_halves();
}

const at::Tensor& Step::target(int microbatch) const {
  static const at::Tensor none;
  return batch_.targets.empty() ? none : batch_.targets.at(microbatch);
}

}  // namespace plumbline::engine

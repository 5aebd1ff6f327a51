#include "runtime/schedule/check/needs.h"

namespace plumbline::schedule {

Needs::Needs(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index)
    : schedule_(schedule), graph_(graph), index_(index), transport_(has_transport(schedule)) {}

std::size_t Needs::count(const Action& action) const {
  switch (action.type) {
    case ActionType::F:
      return 2 + graph_.inputs(action.stage).size();
    case ActionType::B:
    case ActionType::I:
      return 2 + graph_.outputs(action.stage).size();
    case ActionType::W:
    case ActionType::SEND_F:
    case ActionType::SEND_B:
    case ActionType::WAIT_SEND_F:
    case ActionType::WAIT_SEND_B:
      return 1;
    default:
      return 0;
  }
}

std::optional<Action> Needs::at(const Action& action, std::size_t number) const {
  const int stage = action.stage, m = action.microbatch;
  if (number == 0) {
    switch (action.type) {
      case ActionType::B:
      case ActionType::I:
      case ActionType::SEND_F:
        return Action{stage, ActionType::F, m};
      case ActionType::W:
        return Action{stage, ActionType::I, m};
      case ActionType::SEND_B:
        return input_backward(index_, stage, m);
      case ActionType::WAIT_SEND_F:
        return Action{stage, ActionType::SEND_F, m};
      case ActionType::WAIT_SEND_B:
        return Action{stage, ActionType::SEND_B, m};
      default:
        return std::nullopt;
    }
  }
  const bool forward = action.type == ActionType::F;
  if (number == 1) {
    const ActionType receive = forward ? ActionType::RECV_F : ActionType::RECV_B;
    if (!transport_ || !carries(schedule_, graph_, receive, stage, m)) return std::nullopt;
    return Action{stage, receive, m};
  }
  const int other = (forward ? graph_.inputs(stage) : graph_.outputs(stage))[number - 2];
  if (transport_ && schedule_.rank_of(other, m) != schedule_.rank_of(stage, m)) {
    return Action{other, forward ? ActionType::SEND_F : ActionType::SEND_B, m};
  }
  return forward ? Action{other, ActionType::F, m} : input_backward(index_, other, m);
}

}  // namespace plumbline::schedule

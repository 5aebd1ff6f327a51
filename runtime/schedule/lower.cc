#include "runtime/schedule/lower.h"

#include "runtime/error.h"

namespace plumbline {
namespace {

bool is_own_forward(const Action& action, const Action& receive) {
  return receive.type == ActionType::RECV_B && action == Action{receive.stage, ActionType::F, receive.microbatch};
}

}  // namespace

Schedule insert_communication(const Schedule& compute, const StageGraph& graph) {
  Schedule lowered = compute;
  for (auto& actions : lowered.ranks) {
    std::vector<Action> result;
    const auto add_if_needed = [&](ActionType type, const Action& of) {
      if (carries(compute, graph, type, of.stage, of.microbatch)) result.push_back({of.stage, type, of.microbatch});
    };
    for (const Action& action : actions) {
      const bool forward = action.type == ActionType::F;
      const bool backward = action.type == ActionType::B || action.type == ActionType::I;
      if (forward) add_if_needed(ActionType::RECV_F, action);
      if (backward) add_if_needed(ActionType::RECV_B, action);
      result.push_back(action);
      if (forward) add_if_needed(ActionType::SEND_F, action);
      if (backward) add_if_needed(ActionType::SEND_B, action);
    }
    actions = std::move(result);
  }
  return lowered;
}

Schedule hoist_receives(const Schedule& lowered) {
  Schedule result = lowered;
  for (auto& actions : result.ranks) {
    std::vector<Action> hoisted;
    std::vector<Action> held;  // the latest compute action and the sends behind it: what a receive may pass
    const auto release = [&] {
      hoisted.insert(hoisted.end(), held.begin(), held.end());
      held.clear();
    };
    for (const Action& action : actions) {
      if (is_receive(action.type)) {
        if (!held.empty() && is_own_forward(held.front(), action)) release();
        hoisted.push_back(action);
      } else {
        if (is_compute(action.type)) release();
        held.push_back(action);
      }
    }
    release();
    actions = std::move(hoisted);
  }
  return result;
}

Schedule lower(const Schedule& compute, const std::vector<StageEdge>& edges) {
  if (const std::string problem = shape_problem(compute); !problem.empty()) {
    throw InputError("schedule " + compute.name + ": " + problem);
  }
  if (has_communication(compute)) {
    throw InputError("schedule " + compute.name + " has sends and receives already; only F, B, I and W can be lowered");
  }
  for (const auto& actions : compute.ranks) {
    for (const Action& action : actions) {
      if (action.stage < 0 || action.stage >= compute.stages) {
        throw InputError("schedule " + compute.name + ": " + to_string(action) + ": there are stages 0 to " +
                         std::to_string(compute.stages - 1));
      }
    }
  }
  return hoist_receives(insert_communication(compute, StageGraph(compute.stages, edges)));
}

}  // namespace plumbline

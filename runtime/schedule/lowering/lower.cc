#include "runtime/schedule/lowering/lower.h"

#include <algorithm>

#include "runtime/schedule/lowering/entries.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

bool is_backward(const Action& action) { return action.type == B || action.type == I; }

// Does the entry at the beginning of `held` contain the forward whose gradient `receive` posts?
bool has_own_forward(const std::vector<Action>& held, const Action& receive) {
  if (receive.type != RECV_B) return false;
  return std::any_of(
      held.begin(), held.begin() + static_cast<std::ptrdiff_t>(group_end(held, 0)),
      [&](const Action& a) { return a.type == F && a.stage == receive.stage && a.microbatch == receive.microbatch; });
}

}  // namespace

Schedule insert_communication(const Schedule& compute, const StageGraph& graph) {
  Schedule lowered = compute;
  for (auto& actions : lowered.ranks) {
    std::vector<Action> result;
    const auto add_if_needed = [&](ActionType type, const Action& of) {
      if (carries(compute, graph, type, of.stage, of.microbatch)) result.push_back({of.stage, type, of.microbatch});
    };
    for_each_entry(actions, [&](Entry entry) {
      for (const Action& action : entry) {
        if (action.type == F) add_if_needed(RECV_F, action);
        if (is_backward(action)) add_if_needed(RECV_B, action);
      }
      result.insert(result.end(), entry.begin(), entry.end());
      for (const Action& action : entry) {
        if (action.type == F) add_if_needed(SEND_F, action);
        if (is_backward(action)) add_if_needed(SEND_B, action);
      }
    });
    actions = std::move(result);
  }
  return lowered;
}

Schedule hoist_receives(const Schedule& lowered) {
  Schedule result = lowered;
  for (auto& actions : result.ranks) {
    std::vector<Action> hoisted;
    std::vector<Action> held;  // the latest computations and the sends after them: a receive may pass these
    const auto release = [&] {
      hoisted.insert(hoisted.end(), held.begin(), held.end());
      held.clear();
    };
    for_each_entry(actions, [&](Entry entry) {
      if (is_receive(entry.front().type)) {
        if (!held.empty() && has_own_forward(held, entry.front())) release();
        hoisted.push_back(entry.front());
      } else {
        if (is_compute(entry.front().type)) release();
        held.insert(held.end(), entry.begin(), entry.end());
      }
    });
    release();
    actions = std::move(hoisted);
  }
  return result;
}

Schedule lower(const Schedule& schedule, const std::vector<StageEdge>& edges) {
  require_no_transport(schedule);
  return hoist_receives(insert_communication(schedule, StageGraph(schedule.stages, edges)));
}

}  // namespace plumbline::schedule

#include "runtime/schedule/simulation/awaited.h"

#include <algorithm>

namespace plumbline::schedule {
namespace {

// True when no member of the group needs another one, and the list does not end within it.
bool is_sound_group(const std::vector<Action>& actions, std::size_t begin, std::size_t end, const StageGraph& graph) {
  if (actions[end - 1].overlaps_next) return false;
  const auto feeds = [&](const Action& made, const Action& user) {
    if (made.microbatch != user.microbatch) return false;
    if (made.stage == user.stage) return true;
    const bool forward = made.type == ActionType::F;
    if (forward != (user.type == ActionType::F) || made.type == ActionType::W || user.type == ActionType::W) {
      return false;
    }
    const auto& users = forward ? graph.outputs(made.stage) : graph.inputs(made.stage);
    return std::binary_search(users.begin(), users.end(), user.stage);
  };
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t j = i + 1; j < end; ++j) {
      if (feeds(actions[i], actions[j])) return false;
    }
  }
  return true;
}

// The actions of a stage and micro-batch seen so far.
enum Seen : std::uint8_t { kSawForward = 1, kSawInput = 2, kSawWeight = 4 };

std::uint8_t makes(ActionType type) {
  switch (type) {
    case ActionType::F:
      return kSawForward;
    case ActionType::I:
      return kSawInput;
    case ActionType::W:
      return kSawWeight;
    default:
      return kSawInput | kSawWeight;
  }
}

}  // namespace

bool is_complete(const Schedule& compute, const StageGraph& graph, bool forward_only) {
  const auto microbatches = static_cast<std::size_t>(compute.microbatches);
  std::vector<std::uint8_t> seen(compute.stages * microbatches);
  const auto at = [&](int stage, int microbatch) -> std::uint8_t& { return seen[stage * microbatches + microbatch]; };
  for (std::size_t rank = 0; rank < compute.ranks.size(); ++rank) {
    const std::vector<Action>& actions = compute.ranks[rank];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      const bool begins_group = action.overlaps_next && (i == 0 || !actions[i - 1].overlaps_next);
      if (begins_group && !is_sound_group(actions, i, group_end(actions, i), graph)) return false;
      const int stage = action.stage, m = action.microbatch;
      const ActionType type = action.type;
      if (!is_compute(type) && (is_offload(type) || !has_microbatch(type)) && !action.overlaps_next && !begins_group)
        continue;
      if (!is_compute(type) || stage < 0 || stage >= compute.stages || m < 0 || m >= compute.microbatches) return false;
      const auto here = [&](int other) { return compute.rank_of(other, m) == static_cast<int>(rank); };
      std::uint8_t& mine = at(stage, m);
      const std::uint8_t made = makes(type);
      const std::uint8_t before = type == ActionType::F   ? 0
                                  : type == ActionType::W ? kSawForward | kSawInput
                                                          : kSawForward;
      if (!here(stage) || (mine & made) != 0 || (mine & before) != before) return false;
      const bool forward = type == ActionType::F;
      if (type != ActionType::W) {
        for (int other : forward ? graph.inputs(stage) : graph.outputs(stage)) {
          if (here(other) && (at(other, m) & (forward ? kSawForward : kSawInput)) == 0) return false;
        }
      }
      mine |= made;
    }
  }
  const std::uint8_t all = forward_only ? kSawForward : kSawForward | kSawInput | kSawWeight;
  return std::all_of(seen.begin(), seen.end(), [&](std::uint8_t done) { return done == all; });
}

Awaited::Awaited(const Schedule& compute, const StageGraph& graph, bool forward_only)
    : microbatches_(compute.microbatches), directions_(forward_only ? 1 : 2) {
  awaited_.resize(compute.stages * microbatches_ * directions_);
  for (int stage = 0; stage < compute.stages; ++stage) {
    for (int m = 0; m < compute.microbatches; ++m) {
      const int rank = compute.rank_of(stage, m);
      const auto remote = [&](const std::vector<int>& others) {
        return static_cast<std::uint32_t>(
            std::count_if(others.begin(), others.end(), [&](int other) { return compute.rank_of(other, m) != rank; }));
      };
      forward(stage, m).missing = remote(graph.inputs(stage));
      if (!forward_only) backward(stage, m).missing = remote(graph.outputs(stage));
    }
  }
}

}  // namespace plumbline::schedule

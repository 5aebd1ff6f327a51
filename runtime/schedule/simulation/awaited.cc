#include "runtime/schedule/simulation/awaited.h"

#include <algorithm>
#include <span>

namespace plumbline::schedule {
namespace {

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
  const auto can_run = [&](const Action& action, int rank) {
    const int stage = action.stage, m = action.microbatch;
    const ActionType type = action.type;
    if (!is_compute(type) || stage < 0 || stage >= compute.stages || m < 0 || m >= compute.microbatches) return false;
    if (compute.rank_of(stage, m) != rank) return false;
    const std::uint8_t before = type == ActionType::F   ? 0
                                : type == ActionType::W ? kSawForward | kSawInput
                                                        : kSawForward;
    if ((at(stage, m) & before) != before) return false;
    if (type == ActionType::W) return true;
    const bool forward = type == ActionType::F;
    for (int other : forward ? graph.inputs(stage) : graph.outputs(stage)) {
      if (compute.rank_of(other, m) == rank && (at(other, m) & (forward ? kSawForward : kSawInput)) == 0) return false;
    }
    return true;
  };
  for (std::size_t rank = 0; rank < compute.ranks.size(); ++rank) {
    const std::span<const Action> actions(compute.ranks[rank]);
    for (std::size_t begin = 0, end = 0; begin < actions.size(); begin = end) {
      end = group_end(actions, begin);
      const std::span<const Action> entry = actions.subspan(begin, end - begin);
      if (entry.back().overlaps_next) return false;
      if (entry.size() == 1 && (is_offload(entry[0].type) || !has_microbatch(entry[0].type))) continue;
      // No member of a group sees what another one makes.
      for (const Action& action : entry) {
        if (!can_run(action, static_cast<int>(rank))) return false;
      }
      for (const Action& action : entry) {
        std::uint8_t& mine = at(action.stage, action.microbatch);
        const std::uint8_t made = makes(action.type);
        if ((mine & made) != 0) return false;
        mine |= made;
      }
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

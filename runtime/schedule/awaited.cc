#include "runtime/schedule/awaited.h"

#include <algorithm>

namespace plumbline {
namespace {

// What was seen of a stage and micro-batch.
enum Seen : std::uint8_t { kForward = 1, kInput = 2, kWeight = 4 };

std::uint8_t makes(ActionType type) {
  switch (type) {
    case ActionType::F:
      return kForward;
    case ActionType::I:
      return kInput;
    case ActionType::W:
      return kWeight;
    default:
      return kInput | kWeight;
  }
}

}  // namespace

bool is_forward_only(const Schedule& compute) {
  return std::all_of(compute.ranks.begin(), compute.ranks.end(), [](const std::vector<Action>& actions) {
    return std::all_of(actions.begin(), actions.end(), [](const Action& a) { return a.type == ActionType::F; });
  });
}

bool is_complete(const Schedule& compute, const StageGraph& graph, bool forward_only) {
  const auto microbatches = static_cast<std::size_t>(compute.microbatches);
  std::vector<std::uint8_t> seen(compute.stages * microbatches);
  const auto at = [&](int stage, int microbatch) -> std::uint8_t& { return seen[stage * microbatches + microbatch]; };
  for (std::size_t rank = 0; rank < compute.ranks.size(); ++rank) {
    for (const Action& action : compute.ranks[rank]) {
      const auto [stage, type, m, unused] = action;
      if (!is_compute(type) || stage < 0 || stage >= compute.stages || m < 0 || m >= compute.microbatches) return false;
      const auto here = [&](int other) { return compute.rank_of(other, m) == static_cast<int>(rank); };
      std::uint8_t& mine = at(stage, m);
      const std::uint8_t made = makes(type);
      const std::uint8_t before = type == ActionType::F ? 0 : type == ActionType::W ? kForward | kInput : kForward;
      if (!here(stage) || (mine & made) != 0 || (mine & before) != before) return false;
      const bool forward = type == ActionType::F;
      if (type != ActionType::W) {
        for (int other : forward ? graph.inputs(stage) : graph.outputs(stage)) {
          if (here(other) && (at(other, m) & (forward ? kForward : kInput)) == 0) return false;
        }
      }
      mine |= made;
    }
  }
  const std::uint8_t all = forward_only ? kForward : kForward | kInput | kWeight;
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

}  // namespace plumbline

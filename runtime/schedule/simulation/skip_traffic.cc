#include "runtime/schedule/simulation/skip_traffic.h"

#include <algorithm>

namespace plumbline::schedule {
namespace {

std::size_t place_of(int stage, const std::vector<int>& ascending) {
  return static_cast<std::size_t>(std::lower_bound(ascending.begin(), ascending.end(), stage) - ascending.begin());
}

// The skips that take memory, one for each edge, ascending by edge.
std::vector<Stash> by_edge(std::vector<Skip> skips) {
  std::ranges::stable_sort(skips, {}, [](const Skip& skip) { return std::pair(skip.edge.from, skip.edge.to); });
  std::vector<Stash> stashes;
  for (const Skip& skip : skips) {
    if (skip.bytes == 0) continue;
    if (stashes.empty() || stashes.back().edge != skip.edge) stashes.push_back({skip.edge});
    stashes.back().bytes += skip.bytes;
    stashes.back().weight_part += skip.weight_part.value_or(skip.bytes);
  }
  return stashes;
}

}  // namespace

SkipTraffic::SkipTraffic(const StageGraph& graph, const std::vector<StageEdge>& edges, const StepCosts& costs)
    : graph_(graph), costs_(costs) {
  if (costs.skips.empty()) return;
  const int stages = graph.stages();
  for (int stage = 0; stage < stages; ++stage) loads_.emplace_back(graph.outputs(stage).size());
  const auto load = [&](const StageEdge& edge) -> double& {
    return loads_[edge.from][place_of(edge.to, graph.outputs(edge.from))];
  };
  // An edge given twice carries the outputs once.
  for (const StageEdge& edge : edges) load(edge) = of_stage(costs.links.bytes, edge.from);
  for (const Stash& stash : by_edge(costs.skips)) {
    load(stash.edge) += stash.bytes;
    stashed_.resize(stages);
    popped_.resize(stages);
    stashed_[stash.edge.from].push_back(stash);
    popped_[stash.edge.to].push_back(stash);
  }
}

double SkipTraffic::load(int from, int to) const { return loads_[from][place_of(to, graph_.outputs(from))]; }

double SkipTraffic::skipped(int from, int to) const {
  const std::vector<Stash>& stashes = stashed_[from];
  const auto found =
      std::lower_bound(stashes.begin(), stashes.end(), to, [](const Stash& s, int stage) { return s.edge.to < stage; });
  return found != stashes.end() && found->edge.to == to ? found->bytes : 0;
}

}  // namespace plumbline::schedule

// What goes over each edge of a step, and which of it are tensors that skip stages.
#pragma once

#include "runtime/schedule/simulation/costs.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// All skips of one edge together.
struct Stash {
  StageEdge edge = {};
  double bytes = 0, weight_part = 0;
};

class SkipTraffic {
 public:
  /// `edges`: the step's own, without those that only skips have; `graph`: of all of them (with_skips). `costs` passes
  /// require_costs. `graph` and `costs` must outlive it.
  SkipTraffic(const StageGraph& graph, const std::vector<StageEdge>& edges, const StepCosts& costs);

  /// What a message over this edge carries, either way.
  double bytes(int from, int to) const { return loads_.empty() ? of_stage(costs_.links.bytes, from) : load(from, to); }

  /// Whether skips take memory.
  bool holds() const { return !popped_.empty(); }

  /// What a stage stashes for others and pops itself, as far as it takes memory. Only where holds() is true.
  const std::vector<Stash>& stashed(int stage) const { return stashed_[stage]; }
  const std::vector<Stash>& popped(int stage) const { return popped_[stage]; }

  /// The bytes that are skipped over this edge. Only where holds() is true.
  double skipped(int from, int to) const;

 private:
  double load(int from, int to) const;

  const StageGraph& graph_;
  const StepCosts& costs_;
  std::vector<std::vector<double>> loads_;            // as the outputs of graph_; empty where nothing skips
  std::vector<std::vector<Stash>> stashed_, popped_;  // by stage, ascending by the other one
};

}  // namespace plumbline::schedule

// The traffic over each edge of a step, and the part of it that consists of tensors that skip stages.
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
  /// `edges`: the step's own, without those that only skips have; `graph`: all of them (with_skips). `costs` satisfies
  /// require_costs. `graph` and `costs` must outlive it.
  SkipTraffic(const StageGraph& graph, const std::vector<StageEdge>& edges, const StepCosts& costs);

  /// The size of a message over this edge, in either direction.
  double bytes(int from, int to) const { return loads_.empty() ? of_stage(costs_.links.bytes, from) : load(from, to); }

  /// Whether skips take memory.
  bool holds() const { return !popped_.empty(); }

  /// The tensors that a stage stashes for others, and those it pops, if they take memory. Only if holds() is true.
  const std::vector<Stash>& stashed(int stage) const { return stashed_[stage]; }
  const std::vector<Stash>& popped(int stage) const { return popped_[stage]; }

  /// The bytes that skip stages over this edge. Only if holds() is true.
  double skipped(int from, int to) const;

 private:
  double load(int from, int to) const;

  const StageGraph& graph_;
  const StepCosts& costs_;
  std::vector<std::vector<double>> loads_;            // indexed as the outputs of graph_; empty without skips
  std::vector<std::vector<Stash>> stashed_, popped_;  // by stage, ascending by the other one
};

}  // namespace plumbline::schedule

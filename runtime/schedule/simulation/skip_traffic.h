// The traffic over each edge of a step, and its part that consists of tensors that skip stages.
#pragma once

#include "runtime/schedule/simulation/costs.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// All skips over one edge together: their bytes, and the part of them that W needs.
struct Stash {
  StageEdge edge = {};
  double bytes = 0, weight_part = 0;
};

class SkipTraffic {
 public:
  /// `edges` are the step's edges without those that only skips have; `graph` has both (with_skips). `costs` must
  /// satisfy require_costs(). `graph` and `costs` must outlive this object.
  SkipTraffic(const StageGraph& graph, const std::vector<StageEdge>& edges, const StepCosts& costs);

  /// The size of a message over this edge of the graph, in bytes, in either direction.
  double bytes(int from, int to) const { return loads_.empty() ? of_stage(costs_.links.bytes, from) : load(from, to); }

  /// Whether some skip has bytes above 0, and so takes memory.
  bool holds() const { return !popped_.empty(); }

  /// The tensors that a stage stashes for later stages, and those that it pops, without skips of 0 bytes; ascending by
  /// the other stage. Only if holds() is true.
  const std::vector<Stash>& stashed(int stage) const { return stashed_[stage]; }
  const std::vector<Stash>& popped(int stage) const { return popped_[stage]; }

  /// The bytes of all skips over this edge; 0 if there are none. Only if holds() is true.
  double skipped(int from, int to) const;

 private:
  double load(int from, int to) const;

  const StageGraph& graph_;
  const StepCosts& costs_;
  std::vector<std::vector<double>> loads_;            // indexed as the outputs of graph_; empty without skips
  std::vector<std::vector<Stash>> stashed_, popped_;  // by stage, ascending by the other one
};

}  // namespace plumbline::schedule

// The edges of a pipe, indexed by stage: which stages feed which.
#pragma once

#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

class StageGraph {
 public:
  /// Edges may repeat and come in any order. Throws InputError for an edge that does not satisfy 0 <= from < to <
  /// stages.
  StageGraph(int stages, const std::vector<StageEdge>& edges);

  int stages() const { return static_cast<int>(inputs_.size()); }

  /// The stages that feed `stage`, and the stages that it feeds: ascending, each once. References stay valid as long as
  /// this object.
  const std::vector<int>& inputs(int stage) const { return inputs_[stage]; }
  const std::vector<int>& outputs(int stage) const { return outputs_[stage]; }

 private:
  std::vector<std::vector<int>> inputs_, outputs_;
};

/// Whether one of `neighbours` is on another rank than `stage` for this micro-batch, so that data must travel.
bool any_remote(const Schedule& schedule, const std::vector<int>& neighbours, int stage, int microbatch);

/// Whether `type`, a send or a receive, has data to carry for `stage`: SEND_F and RECV_B if it feeds a stage on another
/// rank, RECV_F and SEND_B if a stage on another rank feeds it.
bool carries(const Schedule& schedule, const StageGraph& graph, ActionType type, int stage, int microbatch);

}  // namespace plumbline::schedule

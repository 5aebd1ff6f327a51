// Which stages feed which: the edges of a pipe, indexed by stage.
#pragma once

#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

class StageGraph {
 public:
  /// Edges may repeat. Throws InputError for an edge that does not satisfy 0 <= from < to < stages.
  StageGraph(int stages, const std::vector<StageEdge>& edges);

  int stages() const { return static_cast<int>(inputs_.size()); }

  /// The stages that feed `stage`, and those that it feeds: ascending, each once.
  const std::vector<int>& inputs(int stage) const { return inputs_[stage]; }
  const std::vector<int>& outputs(int stage) const { return outputs_[stage]; }

 private:
  std::vector<std::vector<int>> inputs_, outputs_;
};

/// True when one of `neighbours` is on another rank than `stage` for this micro-batch, so that something must travel.
bool any_remote(const Schedule& schedule, const std::vector<int>& neighbours, int stage, int microbatch);

/// True when `type`, a send or a receive, has something to carry for `stage`: SEND_F and RECV_B when it feeds a stage
/// on another rank, RECV_F and SEND_B when a stage on another rank feeds it.
bool carries(const Schedule& schedule, const StageGraph& graph, ActionType type, int stage, int microbatch);

}  // namespace plumbline::schedule

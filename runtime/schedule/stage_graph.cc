#include "runtime/schedule/stage_graph.h"

#include <algorithm>

#include "runtime/error.h"

namespace plumbline::schedule {

StageGraph::StageGraph(int stages, const std::vector<StageEdge>& edges) : inputs_(stages), outputs_(stages) {
  for (const StageEdge& edge : edges) {
    if (edge.from < 0 || edge.from >= edge.to || edge.to >= stages) {
      throw InputError("edge from stage " + std::to_string(edge.from) + " to stage " + std::to_string(edge.to) +
                       ": values flow from a stage to a later one, out of stages 0 to " + std::to_string(stages - 1));
    }
    inputs_[edge.to].push_back(edge.from);
    outputs_[edge.from].push_back(edge.to);
  }
  for (auto* lists : {&inputs_, &outputs_}) {
    for (std::vector<int>& list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }
}

bool any_remote(const Schedule& schedule, const std::vector<int>& neighbours, int stage, int microbatch) {
  return std::any_of(neighbours.begin(), neighbours.end(), [&](int other) {
    return schedule.rank_of(other, microbatch) != schedule.rank_of(stage, microbatch);
  });
}

bool carries(const Schedule& schedule, const StageGraph& graph, ActionType type, int stage, int microbatch) {
  const bool towards_outputs = type == ActionType::SEND_F || type == ActionType::RECV_B;
  return any_remote(schedule, towards_outputs ? graph.outputs(stage) : graph.inputs(stage), stage, microbatch);
}

}  // namespace plumbline::schedule

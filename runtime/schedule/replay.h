// Running a schedule with tokens instead of tensors: can every rank reach the end of its list?
//
// Each rank does its actions strictly in order. An F waits for the forwards that feed its stage, a B or I for its own F
// and for the gradients from the stages it feeds, a W for its I. In a lowered schedule what comes from another rank
// must have been sent there and its receive posted here. Sends and receives themselves never wait.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/action_index.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline {

struct Step {
  int rank = 0;
  int position = 0;
};

struct Replay {
  std::vector<Step> order;  ///< what ran, each action after everything it waits for
  std::string deadlock;     ///< empty when all ran; else the cycle or the missing partner, with ranks and positions
};

/// Linear in the number of actions (times the edges at their stages). Actions whose stage or micro-batch does not
/// exist, or that stand on a rank without their stage, wait for nothing: check.h reports those.
Replay replay(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index);

/// "rank 1, position 4 (1B0)"
std::string describe_position(const Schedule& schedule, const Step& step);

}  // namespace plumbline

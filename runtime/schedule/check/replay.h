// Runs a schedule with tokens instead of tensors: can every rank reach the end of its list?
//
// Each rank executes its actions strictly in order, each after its needs (needs.h). A group begins when the needs of
// all members are met, and ends as a whole: a member that needs another one waits forever. Receives never wait; whether
// sends do, or the waits for them, depends on the transport (send_model.h).
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/action_index.h"
#include "runtime/schedule/check/send_model.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

struct Step {
  int rank = 0;
  int position = 0;
};

struct Replay {
  /// The executed actions, each after everything it waits for; a SEND appears where it begins.
  std::vector<Step> order;
  /// Empty when every rank reached the end of its list; otherwise the cycle, or the missing partner, with ranks,
  /// positions and the action that each of them waits for.
  std::string deadlock;
};

/// Linear in the number of actions (times the edges at their stages), in time and memory: 12 bytes for each action
/// beside the schedule and the index, and with a limited number of buffers one byte for each message. An action whose
/// stage or micro-batch does not exist, that is on a rank without its stage, or that appears a second time, waits for
/// nothing and does nothing: check.h reports it. An action of a whole stage waits for nothing either.
Replay replay(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const SendModel& sends = {});

/// "rank 1, position 4 (1B0)"
std::string describe_position(const Schedule& schedule, const Step& step);

}  // namespace plumbline::schedule

// Runs a schedule with tokens instead of tensors, to determine whether every rank can reach the end of its list.
//
// Each rank executes its actions strictly in order, each after its needs (needs.h). A group begins when the needs of
// all members are met, and ends as a whole: a member that needs another one waits forever. Receives never wait. Whether
// a SEND or a WAIT_SEND waits depends on the transport (send_model.h).
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/action_index.h"
#include "runtime/schedule/check/send_model.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

struct Replay {
  /// The executed actions, each after everything for which it waits; a SEND appears where it begins. After a deadlock,
  /// the actions executed until then.
  std::vector<Place> order;
  /// Empty if every rank reached the end of its list; otherwise one line with the cycle or the missing partner: ranks,
  /// positions and the actions for which they wait.
  std::string deadlock;
};

/// Linear in the number of actions (times the edges at their stages), in time and memory: 12 bytes for each action
/// beside the schedule and the index, and with a limited number of buffers one byte for each message.
/// shape_problem(schedule) must be empty. An action whose stage or micro-batch does not exist, that is on a rank
/// without its stage, or that appears a second time, waits for nothing and does nothing: check.h reports it. The
/// operations of whole stages block as collectives.h describes.
Replay replay(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const SendModel& sends = {});

}  // namespace plumbline::schedule

// Running a schedule with tokens instead of tensors: can every rank reach the end of its list?
//
// Each rank does its actions strictly in order, what each of them needs (needs.h) before it. A group begins when all
// that its members need is there, and ends as a whole: a member that needs another one waits for ever. Receives never
// wait; whether sends do, or the waits for them, is the transport's matter (send_model.h).
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
  /// What ran, each action after everything it waits for; a SEND stands where it begins.
  std::vector<Step> order;
  /// Empty when every rank came to the end of its list; else the cycle, or the missing partner, with ranks, positions
  /// and what each of them waits for.
  std::string deadlock;
};

/// Linear in the number of actions (times the edges at their stages), in time and memory: 12 bytes for each action
/// beside the schedule and the index, and with a limited number of buffers one byte for each message. Actions whose
/// stage or micro-batch does not exist, that stand on a rank without their stage or a second time, wait for nothing and
/// do nothing: check.h reports those. What is done for a whole stage waits for nothing either.
Replay replay(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const SendModel& sends = {});

/// "rank 1, position 4 (1B0)"
std::string describe_position(const Schedule& schedule, const Step& step);

}  // namespace plumbline::schedule

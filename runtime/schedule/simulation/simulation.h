// Simulates one step by discrete events: when each action begins and ends, which messages travel, how much memory is
// held.
//
// Each rank executes its actions strictly in order; an action begins when its rank is free and its needs are met. The
// events are processed rank by rank, not in the order of time: every time is the maximum and sum of earlier ones, so
// any order that respects the dependencies gives the same numbers, in time linear in the actions. Besides the schedule
// a run without records holds some 17 bytes an action, with a skip for each stage some 32.
#pragma once

#include <vector>

#include "runtime/schedule/simulation/costs.h"
#include "runtime/schedule/trace.h"

namespace plumbline::schedule {

struct Timeline {
  double makespan = 0;             ///< end of the last action; the first can start at 0
  double longest_rank = 0;         ///< most time from the start of a rank's first action to the end of its last
  double bubble_makespan = 0;      ///< 1 - (sum of busy) / (ranks x makespan): a step that begins and ends together
  double bubble_longest_rank = 0;  ///< the same by longest_rank, as the zero-bubble papers count: ranks may enter the
                                   ///< next step before others end this one
  std::vector<double> busy;        ///< per rank: the time spent in actions
  std::vector<double> begin;       ///< per rank: the start of its first action
  std::vector<double> end;         ///< per rank: the end of its last action
  /// Per rank: most (stage, micro-batch) activations at once, from F to B or W (to the end of a forward-only step). The
  /// members of a group happen at the same time: an activation that begins in it is held beside one that ends in it.
  std::vector<int> peak_live;
};

/// One message.
struct Transfer {
  Action producer;
  int to_stage = 0;  ///< the stage whose F, or whose B or I, waits for it
  int from_rank = 0, to_rank = 0;
  double sent = 0;   ///< when its rank sent it: at the end of its action, or when a buffer became free
  double begin = 0;  ///< when its transfer began: at `sent`, or when the link had carried earlier messages
  double end = 0;    ///< when it arrived
};

/// From `time` on, a rank holds `bytes` of activations and skipped tensors.
struct MemoryPoint {
  double time = 0, bytes = 0;
};

/// A link of the chain that determines the step's duration. Each begins when the previous one ends.
struct PathStep {
  enum class Kind {
    Action,    ///< `action` on `rank`
    Transfer,  ///< the result of `action` travels from `rank` to `to_rank`
    Queue,     ///< the same, while it keeps the link from the next message
    Buffer,    ///< no time: `action` begins on `rank` and consumes a message, which frees a buffer of `to_rank`
  };
  Kind kind = Kind::Action;
  Action action;
  int rank = 0, to_rank = 0;
  double begin = 0, end = 0;
};

/// Optional records of a simulation beside its Timeline.
struct Records {
  bool trace = false, transfers = false, memory = false, critical_path = false;
};

struct Simulation {
  Timeline timeline;
  std::vector<double> peak_memory;               ///< per rank: most activations and skipped tensors (Skip), in bytes
  Trace trace;                                   ///< named "predicted"; the members of a group divide its time in turn
  std::vector<Transfer> transfers;               ///< in no particular order
  std::vector<std::vector<MemoryPoint>> memory;  ///< per rank, ascending by time
  std::vector<PathStep> critical_path;           ///< from 0 to the makespan
};

/// `compute` is a compute schedule over stages with these edges and those of costs.skips, possibly forward-only. Throws
/// InputError for costs that require_costs refuses, for a schedule with sends and receives, for one with violations
/// (check.h), and for one whose ranks wait for one another, with the cycle (groups and buffers can cause it).
Simulation simulate_step(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs,
                         const Records& records = {});

/// "rank 2: 1F0", "1F0 from rank 2 to rank 3", ...
std::string to_string(const PathStep& step);

}  // namespace plumbline::schedule

// Simulates one step by discrete events: when each action begins and ends, which messages travel, how much memory is
// held.
//
// Each rank executes its actions strictly in order; an action begins when its rank is free and its needs are met.
// UNSHARD and REDUCE_GRAD take no time on their rank; the operation that they begin (collectives.h) takes that of
// Durations after the last rank has begun it, and the step ends when all have ended. They do not occupy links. OFFLOAD
// and RELOAD take no time on their rank either: their transfers run beside its computations, one after another in the
// order of the list, and the B, I and W of their stage and micro-batch wait for the end of the RELOAD's. The events are
// processed rank by rank, not in the order of time: every time is a maximum or sum of earlier times, so any order that
// respects the dependencies gives the same numbers, in time linear in the number of actions. Besides the schedule, a
// run without records takes about 17 bytes per action; with a skip for each stage, about 32.
#pragma once

#include <vector>

#include "runtime/schedule/simulation/costs.h"
#include "runtime/schedule/trace.h"

namespace plumbline::schedule {

/// Times are in the unit of the durations; the step begins at 0.
struct Timeline {
  double makespan = 0;         ///< end of the last action of the step
  double longest_rank = 0;     ///< most time from the beginning of a rank's first action to the end of its last
  double bubble_makespan = 0;  ///< 1 - (sum of busy) / (ranks x makespan): all ranks begin and end the step together
  double bubble_longest_rank = 0;  ///< the same with longest_rank, as in the zero-bubble papers: ranks may enter the
                                   ///< next step before others end this one
  std::vector<double> busy;        ///< per rank: the time spent in actions
  std::vector<double> begin;       ///< per rank: the beginning of its first action
  std::vector<double> end;         ///< per rank: the end of its last action
  /// Per rank: the most activations, of a stage and micro-batch, at once, from F to B or W (in a forward-only step, to
  /// its end), without those that are on the host (StageMemory). The members of a group run at the same time: an
  /// activation that begins in a group is held beside one that ends in the group.
  std::vector<int> peak_live;
};

/// One message, recorded in the simulation.
struct Transfer {
  Action producer;   ///< the action whose result travels
  int to_stage = 0;  ///< the stage whose F, or whose B or I, waits for the message
  int from_rank = 0, to_rank = 0;
  /// When the producer's group (the producer itself, outside any group) ended, or later, when a buffer became free for
  /// this message or for an earlier one of the group.
  double sent = 0;
  double begin = 0;  ///< when the transfer began: at `sent`, or when the link had carried earlier messages
  double end = 0;    ///< when the message arrived
};

/// From `time` until the next point, a rank holds `bytes` of activations and skipped tensors.
struct MemoryPoint {
  double time = 0, bytes = 0;
};

/// A piece of the chain that determines the step's duration. Each piece begins when the previous one ends.
struct PathStep {
  enum class Kind {
    Action,        ///< `action` on `rank`
    Transfer,      ///< the result of `action` travels from `rank` to `to_rank`
    Queue,         ///< the result of `action` occupies the link for which the next message of the chain waits
    HostTransfer,  ///< `action`, OFFLOAD or RELOAD, moves activations between `rank` and its host
    Operation,  ///< `action`, UNSHARD or REDUCE_GRAD, is carried out by all ranks of its stage, of which `rank` began
                ///< last
    Buffer,     ///< takes no time: `action` begins on `rank` and frees a buffer for which `to_rank` waits
  };
  Kind kind = Kind::Action;
  Action action;
  int rank = 0, to_rank = 0;
  double begin = 0, end = 0;
};

/// The optional records of a simulation: which members of Simulation are filled besides timeline and peak_memory.
struct Records {
  bool trace = false, transfers = false, memory = false, critical_path = false;
};

struct Simulation {
  Timeline timeline;
  std::vector<double> peak_memory;  ///< per rank: the most bytes of activations and skipped tensors (Skip)
  /// Named "predicted", of computations only; the members of a group divide its time, one after another.
  Trace trace;
  std::vector<Transfer> transfers;               ///< in no particular order
  std::vector<std::vector<MemoryPoint>> memory;  ///< per rank, ascending by time; 0 before the first point
  std::vector<PathStep> critical_path;           ///< ascending, from 0 to the makespan
};

/// Simulates one step of `compute`, a schedule of computations and actions of whole stages over stages with these edges
/// and those of costs.skips, possibly forward-only. Throws InputError for costs that require_costs() or time_of()
/// refuses, invalid edges, a schedule with transfers or with violations (check.h), and times or bytes that add up to
/// infinity; also, with the cycle, if ranks wait for one another (groups and buffers can cause that).
Simulation simulate_step(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs,
                         const Records& records = {});

}  // namespace plumbline::schedule

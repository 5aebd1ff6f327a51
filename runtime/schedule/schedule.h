// The schedule: which actions each rank does, in which order. Plain data that everything else reads or makes.
//
// A *compute* schedule has only F, B, I and W; lowering (lower.h) adds the sends and receives. Ranks, stages,
// micro-batches and positions in a rank's list count from 0.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/schedule/action.h"

namespace plumbline {

struct Schedule {
  std::string name;
  int stages = 0;
  int microbatches = 0;
  std::vector<int> rank_of_stage;          ///< one entry per stage
  std::vector<std::vector<Action>> ranks;  ///< one ordered list per rank
  bool operator==(const Schedule&) const = default;
};

/// A value flows from stage `from` to the later stage `to` (which may skip stages), and its gradient back.
struct StageEdge {
  int from = 0;
  int to = 0;
  bool operator==(const StageEdge&) const = default;
};

/// The stages that `rank` holds, ascending.
std::vector<int> stages_of_rank(const Schedule& schedule, int rank);

/// The edges of a plain pipeline: 0->1, 1->2, ...
std::vector<StageEdge> chain_edges(int stages);

/// All actions of all ranks.
std::size_t action_count(const Schedule& schedule);

/// True when some action is a send or a receive, that is, when the schedule was lowered (over more than one rank).
bool has_communication(const Schedule& schedule);

/// Why the fields contradict one another (no ranks, a stage on a rank that does not exist, ...), in one line; empty
/// when they do not. Also refuses a schedule with far fewer actions than stages x micro-batches, so that whoever makes
/// a table of that size stays linear in the number of actions. Says nothing about the actions themselves: see check.h.
std::string shape_problem(const Schedule& schedule);

}  // namespace plumbline

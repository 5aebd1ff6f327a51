// The schedule: which actions each rank executes, in which order. Plain data.
//
// A *compute* schedule has only F, B, I and W, and OFFLOAD and RELOAD; lowering (lower.h) adds the sends and receives.
// Ranks, stages, micro-batches and positions in a rank's list count from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/schedule/action.h"

namespace plumbline::schedule {

struct Schedule {
  std::string name = {};
  int stages = 0;
  int microbatches = 0;
  /// The rank of each stage, indexed by stage. With several replicas of the model, `stages` entries for each, replica
  /// after replica.
  std::vector<int> rank_of_stage = {};
  std::vector<std::vector<Action>> ranks = {};  ///< one ordered list per rank
  /// Indexed by micro-batch: the replica of the model that it goes through (DualPipe, Chimera); empty for a single
  /// replica.
  std::vector<int> replica_of_microbatch = {};
  bool operator==(const Schedule&) const = default;

  /// The rank that executes the actions of this stage and micro-batch; both must exist.
  int rank_of(int stage, int microbatch) const {
    return rank_of_stage[stage + (replica_of_microbatch.empty() ? 0 : replica_of_microbatch[microbatch] * stages)];
  }
  /// The number of replicas of the model; `stages` must not be 0.
  int replicas() const { return static_cast<int>(rank_of_stage.size()) / stages; }
};

/// A value flows from stage `from` to the later stage `to` (which may skip stages), and its gradient back.
struct StageEdge {
  int from = 0;
  int to = 0;
  bool operator==(const StageEdge&) const = default;
};

/// An action, by its rank and its position in the rank's list; -1, -1: none.
struct Place {
  std::int32_t rank = -1, position = -1;
  bool operator==(const Place&) const = default;
};

/// "rank 1, position 4 (1B0)". The action must exist.
std::string describe_position(const Schedule& schedule, const Place& place);

/// The stages that `rank` holds (of any replica), ascending, each once.
std::vector<int> stages_of_rank(const Schedule& schedule, int rank);

/// The ranks that hold `stage`, each once, in the order of their first replica.
std::vector<int> ranks_of_stage(const Schedule& schedule, int stage);

/// The edges of a plain pipeline: 0->1, 1->2, ...
std::vector<StageEdge> chain_edges(int stages);

/// The position after the last action of the group that begins at `position` (Action::overlaps_next), or position + 1
/// for a single action. A group never reaches past the end of the list.
std::size_t group_end(std::span<const Action> actions, std::size_t position);

/// Calls visit(entry) with each entry of a list, in order: a std::span<const Action> over the members of a group, or
/// over a single action.
template <class Visit>
void for_each_entry(std::span<const Action> actions, Visit visit) {
  for (std::size_t begin = 0; begin < actions.size();) {
    const std::size_t end = group_end(actions, begin);
    visit(actions.subspan(begin, end - begin));
    begin = end;
  }
}

/// The number of actions of all ranks.
std::size_t action_count(const Schedule& schedule);

/// Whether some action involves other ranks: a transfer, or an action of a whole stage.
bool has_communication(const Schedule& schedule);

/// Whether some action is a send, a receive or the wait for a send. Then a value from another rank is available once it
/// was sent and its receive posted; otherwise as soon as its producer has ended.
bool has_transport(const Schedule& schedule);

/// Whether some action is an OFFLOAD or a RELOAD.
bool has_offload(const Schedule& schedule);

/// Whether some action is a backward or half of one; a schedule without any is for evaluation.
bool has_backward(const Schedule& schedule);

/// The reason why the fields contradict one another (no ranks, a stage on a rank that does not exist, a rank without a
/// stage, ...), in one line; empty if they do not. Also refuses a schedule with far fewer actions than stages x
/// micro-batches, so that a table of that size stays linear in the number of actions. check.h validates the actions
/// themselves.
std::string shape_problem(const Schedule& schedule);

}  // namespace plumbline::schedule

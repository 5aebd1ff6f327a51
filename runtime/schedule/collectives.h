// The operations of a schedule in which all ranks that hold a stage take part: the gathering of its parameters
// (UNSHARD) and the sum of its gradients (REDUCE_GRAD).
//
// The k-th UNSHARDs of a stage on all its ranks begin one operation together, and so do its k-th REDUCE_GRADs. An
// operation ends after all its ranks have begun it. Beginning never blocks; a computation of the stage between UNSHARD
// and RESHARD, that RESHARD, or a WAIT_REDUCE_GRAD, blocks until the operation has ended.
#pragma once

#include <map>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

class Collectives {
 public:
  /// Linear in the number of actions, but for sorting; takes no memory for a schedule without such actions. Does not
  /// refer to the schedule after construction. shape_problem(schedule) must be empty; actions of stages that do not
  /// exist, or that the rank does not hold, are ignored.
  explicit Collectives(const Schedule& schedule);

  struct Operation {
    ActionType type = ActionType::UNSHARD;  ///< UNSHARD or REDUCE_GRAD
    int stage = 0;
    int number = 0;  ///< among those of its kind and stage, from 0
    /// The actions that begin it, one for each rank that has one, in the order of ranks_of(); at least one.
    std::vector<Place> begun_at = {};
  };

  const std::vector<Operation>& operations() const { return operations_; }
  /// The ranks that must begin the operation: ranks_of_stage() of its stage.
  const std::vector<int>& ranks_of(const Operation& operation) const { return ranks_.at(operation.stage); }

  /// The operation that the action at this position begins; -1: none.
  int begun_by(int rank, int position) const { return of(begun_by_, rank, position); }
  /// The operation that must have ended before the action at this position is executed; -1: none.
  int needed_by(int rank, int position) const { return of(needed_by_, rank, position); }

 private:
  using ByPosition = std::vector<std::vector<int>>;

  static int of(const ByPosition& table, int rank, int position) {
    return table.empty() || table[rank].empty() ? -1 : table[rank][position];
  }

  std::vector<Operation> operations_;
  std::map<int, std::vector<int>> ranks_;  // by stage
  ByPosition begun_by_, needed_by_;        // by rank; empty for a rank without such actions
};

}  // namespace plumbline::schedule

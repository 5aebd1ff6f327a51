// Looks up the position of each action in its rank's list; used by checks, replay and simulation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

class ActionIndex {
 public:
  /// Linear in the number of actions; shape_problem(schedule) must be empty. The first of two equal actions counts. The
  /// index omits an action on a rank that does not hold its stage, one out of range, and one of a whole stage (UNSHARD,
  /// ...), which may appear several times.
  explicit ActionIndex(const Schedule& schedule);

  /// The position in the list of the rank that executes the action's stage and micro-batch; -1 when it is absent.
  int position(const Action& action) const {
    const int column = column_[static_cast<std::size_t>(action.type)];
    return column >= 0 && in_range(action) ? table_[row(action) + column] : -1;
  }

  bool in_range(const Action& action) const {
    return action.stage >= 0 && action.stage < stages_ && action.microbatch >= 0 && action.microbatch < microbatches_;
  }

 private:
  std::size_t row(const Action& action) const {
    return (static_cast<std::size_t>(action.stage) * microbatches_ + action.microbatch) * columns_;
  }

  int stages_, microbatches_;
  int columns_ = 0;                           ///< one per kind that occurs, so that memory is linear in the actions
  std::array<int, kActionTypeCount> column_;  ///< by kind; -1 if it does not occur
  std::vector<std::int32_t> table_;
};

/// The action that sends gradients to earlier stages: I when the backward is split, else B.
Action input_backward(const ActionIndex& index, int stage, int microbatch);

}  // namespace plumbline::schedule

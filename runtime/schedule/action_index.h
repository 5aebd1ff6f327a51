// Where each action stands in its rank's list, as a table: what checks, replay and simulation look up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

class ActionIndex {
 public:
  /// Linear in the number of actions; shape_problem(schedule) must be empty. Of an action that stands twice the first
  /// counts; one that stands on a rank that does not hold its stage, or is out of range, is not entered, nor is one of
  /// a whole stage (UNSHARD, ...), which may stand several times.
  explicit ActionIndex(const Schedule& schedule);

  /// The position in the list of the rank that does the action's stage and micro-batch; -1 where it is not there.
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
  int columns_ = 0;                           ///< as many as kinds occur, so that memory follows the number of actions
  std::array<int, kActionTypeCount> column_;  ///< by kind; -1 where it does not occur
  std::vector<std::int32_t> table_;
};

/// The action that sends gradients to earlier stages: I where the backward comes in halves, else B.
Action input_backward(const ActionIndex& index, int stage, int microbatch);

}  // namespace plumbline::schedule

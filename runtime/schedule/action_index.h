// Looks up the position of each action in its rank's list. Checks, replay and simulation use it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// Immutable; does not refer to the schedule after construction.
class ActionIndex {
 public:
  /// Takes linear time. Aborts unless shape_problem(schedule) is empty. Of two equal actions the index has the first.
  /// The index omits an action on a rank that does not hold its stage, one out of range, and one of a whole stage
  /// (UNSHARD, ...), which may appear several times.
  explicit ActionIndex(const Schedule& schedule);

  /// The position in the list of the rank that executes the action's stage and micro-batch; -1 if the index has no such
  /// action.
  int position(const Action& action) const {
    const int column = column_[static_cast<std::size_t>(action.type)];
    return column >= 0 && in_range(action) ? table_[row(action) + column] : -1;
  }

  /// Whether the schedule has the action's stage and micro-batch.
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

/// The action that computes the gradients for earlier stages: I if the index has an I of this stage and micro-batch,
/// else B, which may be absent.
Action input_backward(const ActionIndex& index, int stage, int microbatch);

}  // namespace plumbline::schedule

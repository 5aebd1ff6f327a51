// Where each action stands in its rank's list, as a table: what checks, replay and simulation look up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline {

class ActionIndex {
 public:
  /// Linear in the number of actions; shape_problem(schedule) must be empty. Of an action that stands twice the first
  /// counts; one that stands on a rank that does not hold its stage, or is out of range, is not entered.
  explicit ActionIndex(const Schedule& schedule);

  /// The position in the list of the rank that holds the action's stage; -1 where it is not there.
  int position(const Action& action) const {
    return in_range(action) ? table_[row(action)][static_cast<std::size_t>(action.type)] : -1;
  }

  bool in_range(const Action& action) const {
    return action.stage >= 0 && action.stage < stages_ && action.microbatch >= 0 && action.microbatch < microbatches_;
  }

 private:
  std::size_t row(const Action& action) const {
    return static_cast<std::size_t>(action.stage) * microbatches_ + action.microbatch;
  }

  int stages_, microbatches_;
  std::vector<std::array<std::int32_t, 8>> table_;
};

/// The action that sends gradients to earlier stages: I where the backward comes in halves, else B.
Action input_backward(const ActionIndex& index, int stage, int microbatch);

}  // namespace plumbline

// Builds the order of a rank through which two flows of micro-batches pass, for the V orders and the two-directional
// ones.
//
// Lane 0 is the flow that reaches the rank first. Each lane counts its own forwards, backwards and weight halves, so an
// order is written as in the papers, by lanes and kinds alone: F0, F1, I1, W1, ...
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "runtime/schedule/action.h"

namespace plumbline::schedule {

/// One flow: the rank's stage in it, and its micro-batches, consecutive from first_microbatch.
struct Lane {
  int stage = 0;
  int first_microbatch = 0;
  int microbatches = 0;
};

/// One action: its lane (0 or 1) and its kind (F, B, I or W).
struct LaneStep {
  int lane = 0;
  ActionType type = ActionType::F;
};

class TwoLanes {
 public:
  explicit TwoLanes(const std::array<Lane, 2>& lanes) : lanes_(lanes) {}

  /// Appends these steps `times` times, each with the next micro-batch of its lane and kind. Omits a step of a lane
  /// that has no micro-batch left, so `times` may exceed the number of micro-batches.
  void repeat(std::int64_t times, std::initializer_list<LaneStep> steps);

  /// Appends (F;B)OVERLAP_F_B: the next forward of one lane with the next backward of the other. Both lanes must have a
  /// micro-batch left for it.
  void overlap(int forward_lane, int backward_lane);

  /// Appends the next I of `lane`, which must have a micro-batch left, and puts its W into a queue shared by both
  /// lanes.
  void input_later_weight(int lane);
  /// Appends the oldest W of that queue; aborts if the queue is empty.
  void longest_waiting_weight();

  /// Moves the order out; no other call may follow.
  std::vector<Action> take() { return std::move(order_); }

 private:
  // Full backwards and input halves count as one kind.
  std::int64_t& next(const LaneStep& step);
  void add(const LaneStep& step, bool overlaps_next = false);

  std::array<Lane, 2> lanes_;
  std::array<std::array<std::int64_t, 3>, 2> next_ = {};
  std::vector<Action> order_, waiting_;
  std::size_t done_waiting_ = 0;
};

}  // namespace plumbline::schedule

// Builds the order of a rank that two flows of micro-batches pass, for the V orders and the two-directional ones.
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

/// The rank's stage in that flow, and the flow's micro-batches.
struct Lane {
  int stage = 0;
  int first_microbatch = 0;
  int microbatches = 0;
};

struct LaneStep {
  int lane = 0;
  ActionType type = ActionType::F;
};

class TwoLanes {
 public:
  explicit TwoLanes(const std::array<Lane, 2>& lanes) : lanes_(lanes) {}

  /// These steps `times` times, each with the next micro-batch of its lane and kind. A step of an exhausted lane is
  /// left out, so an order for more micro-batches than exist may be given and is cut to size.
  void repeat(std::int64_t times, std::initializer_list<LaneStep> steps);

  /// (F;B)OVERLAP_F_B: the next forward of one lane with the next backward of the other.
  void overlap(int forward_lane, int backward_lane);

  /// An I whose W joins a queue shared by both lanes, and the oldest W of that queue.
  void input_later_weight(int lane);
  void longest_waiting_weight();

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

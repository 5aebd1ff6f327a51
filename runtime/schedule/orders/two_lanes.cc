#include "runtime/schedule/orders/two_lanes.h"

#include <algorithm>

#include "runtime/error.h"

namespace plumbline::schedule {

std::int64_t& TwoLanes::next(const LaneStep& step) {
  const int kind = step.type == ActionType::F ? 0 : step.type == ActionType::W ? 2 : 1;
  return next_[step.lane][kind];
}

void TwoLanes::add(const LaneStep& step, bool overlaps_next) {
  const Lane& lane = lanes_[step.lane];
  const std::int64_t number = next(step)++;
  if (number >= lane.microbatches) return;
  order_.push_back({lane.stage, step.type, lane.first_microbatch + static_cast<int>(number), overlaps_next});
}

void TwoLanes::repeat(std::int64_t times, std::initializer_list<LaneStep> steps) {
  // The number of rounds in which some lane still has a micro-batch; further rounds change nothing.
  std::int64_t left = 0;
  for (const LaneStep& step : steps) left = std::max(left, lanes_[step.lane].microbatches - next(step));
  const std::int64_t rounds = std::min(times, left);
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const LaneStep& step : steps) add(step);
  }
}

void TwoLanes::overlap(int forward_lane, int backward_lane) {
  add({forward_lane, ActionType::F}, true);
  add({backward_lane, ActionType::B});
}

void TwoLanes::input_later_weight(int lane) {
  add({lane, ActionType::I});
  Action weight = order_.back();
  weight.type = ActionType::W;
  waiting_.push_back(weight);
}

void TwoLanes::longest_waiting_weight() {
  PLUMBLINE_CHECK(done_waiting_ < waiting_.size(), "no weight half waits");
  order_.push_back(waiting_[done_waiting_++]);
}

}  // namespace plumbline::schedule

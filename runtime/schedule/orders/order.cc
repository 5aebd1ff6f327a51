#include "runtime/schedule/orders/order.h"

#include "runtime/error.h"

namespace plumbline::schedule {

void refuse(const ScheduleRequest& request, const std::string& reason) {
  throw InputError("schedule " + request.name + ": " + reason);
}

std::vector<int> looped_placement(const ScheduleRequest& request) {
  std::vector<int> ranks;
  for (int stage = 0; stage < request.ranks * request.stages_per_rank; ++stage) ranks.push_back(stage % request.ranks);
  return ranks;
}

std::vector<int> v_placement(const ScheduleRequest& request) {
  std::vector<int> ranks;
  for (int stage = 0; stage < request.ranks * request.stages_per_rank; ++stage) {
    const int at = stage % request.ranks;
    const bool down = stage / request.ranks % 2 == 0;
    ranks.push_back(down ? at : request.ranks - 1 - at);
  }
  return ranks;
}

Schedule assemble(const ScheduleRequest& request, std::vector<int> rank_of_stage,
                  const std::function<std::vector<Action>(int rank)>& order_of_rank) {
  Schedule schedule{.name = request.name,
                    .stages = static_cast<int>(rank_of_stage.size()),
                    .microbatches = request.microbatches,
                    .rank_of_stage = std::move(rank_of_stage)};
  for (int rank = 0; rank < request.ranks; ++rank) schedule.ranks.push_back(order_of_rank(rank));
  return schedule;
}

}  // namespace plumbline::schedule

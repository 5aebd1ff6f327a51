#include "runtime/schedule/orders/replicated.h"

#include <algorithm>
#include <utility>

#include "runtime/schedule/orders/order.h"
#include "runtime/schedule/orders/v/v_fixed.h"
#include "runtime/text/counted.h"

namespace plumbline::schedule {
namespace {

void require_even(const ScheduleRequest& request, int number, const std::string& what) {
  if (number % 2 == 0) return;
  const std::string fewer = number > 1 ? std::to_string(number - 1) + ", " : std::string();
  refuse(request, counted(number, what) + "; the two directions need an even number, nearest: " + fewer +
                      std::to_string(std::int64_t{number} + 1));
}

template <typename Order>
Schedule in_two_directions(const ScheduleRequest& request, const Order& order_of_rank) {
  std::vector<int> placement = looped_placement(request);
  for (int stage = 0; stage < request.ranks; ++stage) placement.push_back(request.ranks - 1 - stage);
  Schedule schedule = assemble(request, std::move(placement), order_of_rank);
  schedule.stages = request.ranks;
  for (int m = 0; m < request.microbatches; ++m) {
    schedule.replica_of_microbatch.push_back(m < request.microbatches / 2 ? 0 : 1);
  }
  return schedule;
}

std::vector<Action> chimera_order(const ScheduleRequest& request, int rank) {
  const std::int64_t ranks = request.ranks;
  const int half = request.microbatches / 2;
  const int unit = request.ranks / 2;  // micro-batches of one replica in a unit
  std::vector<std::pair<std::int64_t, Action>> by_slot;
  for (int replica = 0; replica < 2; ++replica) {
    const int stage = replica == 0 ? rank : request.ranks - 1 - rank;  // also its distance from that first rank
    for (int n = 0; n < half; ++n) {
      const std::int64_t begin = 2 * ranks * (n / unit) + 2 * (n % unit);
      const int microbatch = replica * half + n;
      by_slot.push_back({begin + stage, {stage, ActionType::F, microbatch}});
      by_slot.push_back({begin + 2 * ranks - 1 - stage, {stage, ActionType::B, microbatch}});
    }
  }
  std::sort(by_slot.begin(), by_slot.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Action> order;
  for (const auto& [slot, action] : by_slot) order.push_back(action);
  return order;
}

}  // namespace

Schedule dual_pipe(const ScheduleRequest& request) {
  require_even(request, request.ranks, "rank");
  require_even(request, request.microbatches, "micro-batch");
  if (request.microbatches / 2 < request.ranks) {
    refuse(request, counted(request.microbatches, "micro-batch") + " for " + counted(request.ranks, "rank") +
                        "; at least " + std::to_string(std::int64_t{2} * request.ranks) + ", two a rank, are needed");
  }
  const int half = request.microbatches / 2;
  return in_two_directions(request, [&](int rank) {
    const int mirrored = request.ranks - 1 - rank;
    const Lane down{.stage = rank, .first_microbatch = 0, .microbatches = half};
    const Lane up{.stage = mirrored, .first_microbatch = half, .microbatches = half};
    return rank < mirrored ? dual_pipe_order(rank, request.ranks / 2, {down, up})
                           : dual_pipe_order(mirrored, request.ranks / 2, {up, down});
  });
}

Schedule chimera(const ScheduleRequest& request) {
  require_even(request, request.ranks, "rank");
  require_even(request, request.microbatches, "micro-batch");
  return in_two_directions(request, [&](int rank) { return chimera_order(request, rank); });
}

}  // namespace plumbline::schedule

#include "runtime/schedule/orders/v/v_fixed.h"

#include <algorithm>

#include "runtime/schedule/orders/order.h"
#include "runtime/text/counted.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

std::array<Lane, 2> v_lanes(const ScheduleRequest& request, int rank) {
  return {Lane{.stage = rank, .microbatches = request.microbatches},
          Lane{.stage = 2 * request.ranks - 1 - rank, .microbatches = request.microbatches}};
}

}  // namespace

Schedule zb_v(const ScheduleRequest& request) {
  const std::int64_t ranks = request.ranks;
  const std::int64_t padded = std::max<std::int64_t>(request.microbatches, 2 * ranks - 1);
  return assemble(request, v_placement(request), [&](int rank) {
    const std::int64_t up = ranks - rank;  // ranks from here to the turn
    TwoLanes order(v_lanes(request, rank));
    order.repeat(2 * up - 1, {{0, F}});
    order.repeat(rank, {{1, F}, {0, F}});
    order.repeat(up, {{1, F}, {1, I}, {1, W}});
    order.repeat(padded - 2 * ranks + 1 + rank, {{0, F}, {0, I}, {0, W}, {1, F}, {1, I}, {1, W}});
    order.repeat(up - 1, {{0, I}, {0, W}, {1, F}, {1, I}, {1, W}});
    order.repeat(rank, {{0, I}, {1, I}});
    order.repeat(up, {{0, I}, {0, W}});
    order.repeat(rank, {{1, W}});
    order.repeat(rank, {{0, W}});
    return order.take();
  });
}

std::vector<Action> dual_pipe_order(int rank, int ranks, const std::array<Lane, 2>& lanes) {
  const int hops = ranks - 1 - rank;
  TwoLanes order(lanes);
  order.repeat(2 * hops, {{0, F}});
  order.repeat(rank + 1, {{0, F}, {1, F}});
  order.repeat(hops, {{1, I}, {1, W}, {1, F}});
  for (int n = 0; n < lanes[0].microbatches - 2 * ranks + 1 + rank; ++n) {
    if (n == 0 && hops == 0) {
      order.repeat(1, {{0, F}, {1, B}});  // in a group the F would wait for the first gradient
    } else {
      order.overlap(0, 1);
    }
    order.overlap(1, 0);
  }
  for (int n = 0; n < hops; ++n) {
    order.repeat(1, {{1, B}});
    order.overlap(1, 0);
  }
  // 2(r+1) backwards, of which the last r+1 are halves.
  for (int n = 0; n < 2 * (rank + 1); ++n) {
    const int lane = n % 2 == 0 ? 1 : 0;
    if (n < rank + 1) {
      order.repeat(1, {{lane, B}});
    } else {
      order.input_later_weight(lane);
    }
  }
  for (int n = 0; n < hops; ++n) {
    order.longest_waiting_weight();
    order.input_later_weight(0);
  }
  for (int n = 0; n < rank + 1; ++n) order.longest_waiting_weight();
  return order.take();
}

Schedule dual_pipe_v(const ScheduleRequest& request) {
  if (request.microbatches / 2 < request.ranks) {
    refuse(request, counted(request.microbatches, "micro-batch") + " for " +
                        counted(std::int64_t{2} * request.ranks, "stage") + "; at least as many as stages are needed");
  }
  return assemble(request, v_placement(request),
                  [&](int rank) { return dual_pipe_order(rank, request.ranks, v_lanes(request, rank)); });
}

}  // namespace plumbline::schedule

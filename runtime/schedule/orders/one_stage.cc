#include "runtime/schedule/orders/one_stage.h"

#include <algorithm>

#include "runtime/schedule/orders/order.h"

namespace plumbline {
namespace {

std::vector<Action> gpipe_order(int rank, int microbatches) {
  std::vector<Action> order;
  for (int m = 0; m < microbatches; ++m) order.push_back({rank, ActionType::F, m});
  for (int m = 0; m < microbatches; ++m) order.push_back({rank, ActionType::B, m});
  return order;
}

std::vector<Action> one_f_one_b_order(int rank, int ranks, int microbatches) {
  const int warm_up = std::min(microbatches, ranks - 1 - rank);
  std::vector<Action> order;
  for (int m = 0; m < warm_up; ++m) order.push_back({rank, ActionType::F, m});
  for (int m = warm_up; m < microbatches; ++m) {
    order.push_back({rank, ActionType::F, m});
    order.push_back({rank, ActionType::B, m - warm_up});
  }
  for (int m = microbatches - warm_up; m < microbatches; ++m) order.push_back({rank, ActionType::B, m});
  return order;
}

// `warm_up` forwards first; from then on at most `lag` input halves are ahead of their weight halves.
std::vector<Action> zero_bubble_order(int rank, int microbatches, int warm_up, int lag) {
  std::vector<Action> order;
  int forwards = 0, weights = 0;
  const auto forward_if_left = [&] {
    if (forwards < microbatches) order.push_back({rank, ActionType::F, forwards++});
  };
  while (forwards < std::min(microbatches, warm_up)) forward_if_left();
  for (int m = 0; m < microbatches; ++m) {
    order.push_back({rank, ActionType::I, m});
    if (m + 1 - weights > lag) order.push_back({rank, ActionType::W, weights++});
    forward_if_left();
  }
  while (weights < microbatches) order.push_back({rank, ActionType::W, weights++});
  return order;
}

}  // namespace

Schedule gpipe(const ScheduleRequest& request) {
  return assemble(request, looped_placement(request),
                  [&](int rank) { return gpipe_order(rank, request.microbatches); });
}

Schedule one_f_one_b(const ScheduleRequest& request) {
  return assemble(request, looped_placement(request),
                  [&](int rank) { return one_f_one_b_order(rank, request.ranks, request.microbatches); });
}

Schedule zb_h1(const ScheduleRequest& request) {
  return assemble(request, looped_placement(request),
                  [&](int rank) { return zero_bubble_order(rank, request.microbatches, request.ranks - rank, rank); });
}

Schedule zb_h2(const ScheduleRequest& request) {
  return assemble(request, looped_placement(request), [&](int rank) {
    return zero_bubble_order(rank, request.microbatches, 2 * (request.ranks - rank) - 1, 2 * rank);
  });
}

}  // namespace plumbline

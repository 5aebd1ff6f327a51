#include "runtime/schedule/orders/in_turn.h"

#include <algorithm>

namespace plumbline::schedule {
namespace {

Action as(Action action, ActionType type) {
  action.type = type;
  return action;
}

// emit(order, n) appends the n-th backward.
template <typename Emit>
std::vector<Action> take_turns(const std::vector<Action>& forwards, std::size_t backwards, std::int64_t warm_up,
                               const Emit& emit) {
  const std::size_t first =
      static_cast<std::size_t>(std::min<std::int64_t>(warm_up, static_cast<std::int64_t>(forwards.size())));
  std::vector<Action> order(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t n = 0; n < backwards; ++n) {
    if (first + n < forwards.size()) order.push_back(forwards[first + n]);
    emit(order, n);
  }
  return order;
}

}  // namespace

std::vector<Action> in_turn(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                            std::int64_t warm_up) {
  return take_turns(forwards, backwards.size(), warm_up,
                    [&](std::vector<Action>& order, std::size_t n) { order.push_back(backwards[n]); });
}

std::vector<Action> in_turn_by_halves(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                                      std::int64_t warm_up, std::int64_t lag) {
  std::size_t weights = 0;
  auto order = take_turns(forwards, backwards.size(), warm_up, [&](std::vector<Action>& into, std::size_t n) {
    into.push_back(as(backwards[n], ActionType::I));
    if (static_cast<std::int64_t>(n) >= lag) into.push_back(as(backwards[weights++], ActionType::W));
  });
  while (weights < backwards.size()) order.push_back(as(backwards[weights++], ActionType::W));
  return order;
}

}  // namespace plumbline::schedule

#include "conformance/judge/stage_orders.h"

namespace plumbline::conformance {

reference::StageOrders stage_orders(const schedule::Schedule& schedule) {
  reference::StageOrders orders(schedule.stages, std::vector<reference::StageOrder>(schedule.replicas()));
  for (const std::vector<schedule::Action>& rank : schedule.ranks) {
    for (const schedule::Action& action : rank) {
      if (!schedule::has_microbatch(action.type)) continue;
      const int replica =
          schedule.replica_of_microbatch.empty() ? 0 : schedule.replica_of_microbatch[action.microbatch];
      reference::StageOrder& order = orders[action.stage][replica];
      if (action.type == schedule::ActionType::F) order.forwards.push_back(action.microbatch);
      if (action.type == schedule::ActionType::B || action.type == schedule::ActionType::W)
        order.backwards.push_back(action.microbatch);
    }
  }
  return orders;
}

}  // namespace plumbline::conformance

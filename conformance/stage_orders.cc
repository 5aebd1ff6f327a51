#include "conformance/stage_orders.h"

namespace plumbline {

StageOrders stage_orders(const Schedule& schedule) {
  StageOrders orders(schedule.stages, std::vector<StageOrder>(schedule.replicas()));
  for (const std::vector<Action>& rank : schedule.ranks) {
    for (const Action& action : rank) {
      if (!has_microbatch(action.type)) continue;
      const int replica =
          schedule.replica_of_microbatch.empty() ? 0 : schedule.replica_of_microbatch[action.microbatch];
      StageOrder& order = orders[action.stage][replica];
      if (action.type == ActionType::F) order.forwards.push_back(action.microbatch);
      if (action.type == ActionType::B || action.type == ActionType::W) order.backwards.push_back(action.microbatch);
    }
  }
  return orders;
}

}  // namespace plumbline

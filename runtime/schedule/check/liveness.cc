#include "runtime/schedule/check/liveness.h"

#include <algorithm>

namespace plumbline::schedule {

std::vector<int> peak_live(const Schedule& schedule) {
  std::vector<int> peaks;
  for (const std::vector<Action>& actions : schedule.ranks) {
    int alive = 0, peak = 0;
    for_each_entry(actions, [&](std::span<const Action> entry) {
      int ended = 0;
      for (const Action& action : entry) {
        const ActionType type = action.type;
        alive += type == ActionType::F || type == ActionType::RELOAD;
        ended += type == ActionType::B || type == ActionType::W || type == ActionType::OFFLOAD;
      }
      peak = std::max(peak, alive);
      alive -= ended;
    });
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace plumbline::schedule

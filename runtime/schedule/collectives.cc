#include "runtime/schedule/collectives.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plumbline::schedule {
namespace {

using Key = std::tuple<ActionType, int, int>;  // kind, stage, number

}  // namespace

Collectives::Collectives(const Schedule& schedule) {
  const auto begins = [&](const Action& action) {
    return (action.type == ActionType::UNSHARD || action.type == ActionType::REDUCE_GRAD) && action.stage >= 0 &&
           action.stage < schedule.stages;
  };
  const auto rank_begins = [&](const std::vector<Action>& actions) {
    return std::any_of(actions.begin(), actions.end(), begins);
  };
  if (std::none_of(schedule.ranks.begin(), schedule.ranks.end(), rank_begins)) return;

  std::map<Key, int> numbers;
  begun_by_.resize(schedule.ranks.size());
  needed_by_.resize(schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<Action>& actions = schedule.ranks[rank];
    if (!rank_begins(actions)) continue;
    begun_by_[rank].assign(actions.size(), -1);
    needed_by_[rank].assign(actions.size(), -1);
    std::map<std::pair<ActionType, int>, int> counts;
    std::map<int, int> gathered, reduced;  // by stage: the latest operation
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      const auto latest = [&](const std::map<int, int>& of_stage) {
        const auto found = of_stage.find(action.stage);
        return found == of_stage.end() ? -1 : found->second;
      };
      if (begins(action)) {
        const std::vector<int> ranks = ranks_of_stage(schedule, action.stage);
        const int number = counts[{action.type, action.stage}]++;
        const auto [known, is_new] =
            numbers.try_emplace({action.type, action.stage, number}, static_cast<int>(operations_.size()));
        if (is_new) {
          operations_.push_back({action.type, action.stage, number, {}});
          operations_.back().begun_at.resize(ranks.size());
        }
        const auto mine = std::find(ranks.begin(), ranks.end(), static_cast<int>(rank));
        if (mine == ranks.end()) continue;  // check.h reports it
        operations_[known->second].begun_at[mine - ranks.begin()] = {static_cast<std::int32_t>(rank),
                                                                     static_cast<std::int32_t>(i)};
        begun_by_[rank][i] = known->second;
        (action.type == ActionType::UNSHARD ? gathered : reduced)[action.stage] = known->second;
      } else if (action.type == ActionType::RESHARD) {
        gathered.erase(action.stage);
      } else if (is_compute(action.type)) {
        needed_by_[rank][i] = latest(gathered);
      } else if (action.type == ActionType::WAIT_REDUCE_GRAD) {
        needed_by_[rank][i] = latest(reduced);
      }
    }
  }
}

}  // namespace plumbline::schedule

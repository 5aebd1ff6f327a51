#include "runtime/schedule/collectives.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace plumbline::schedule {
namespace {

using Key = std::tuple<ActionType, int, int>;        // kind, stage, number
using Turns = std::unordered_map<int, std::size_t>;  // by rank: its turn in ranks_of_stage()

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

  std::map<int, Turns> turns;  // by stage
  const auto turns_of = [&](int stage) -> const Turns& {
    const auto [found, is_new] = turns.try_emplace(stage);
    if (!is_new) return found->second;
    std::vector<int>& ranks = ranks_[stage];
    ranks = ranks_of_stage(schedule, stage);
    for (std::size_t i = 0; i < ranks.size(); ++i) found->second.emplace(ranks[i], i);
    return found->second;
  };
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
        if (!turns_of(action.stage).contains(static_cast<int>(rank))) continue;  // check.h reports it
        const int number = counts[{action.type, action.stage}]++;
        const auto [known, is_new] =
            numbers.try_emplace({action.type, action.stage, number}, static_cast<int>(operations_.size()));
        if (is_new) operations_.push_back({action.type, action.stage, number, {}});
        operations_[known->second].begun_at.push_back({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(i)});
        begun_by_[rank][i] = known->second;
        (action.type == ActionType::UNSHARD ? gathered : reduced)[action.stage] = known->second;
      } else if (action.type == ActionType::RESHARD) {
        needed_by_[rank][i] = latest(gathered);
        gathered.erase(action.stage);
      } else if (is_compute(action.type)) {
        needed_by_[rank][i] = latest(gathered);
      } else if (action.type == ActionType::WAIT_REDUCE_GRAD) {
        needed_by_[rank][i] = latest(reduced);
      }
    }
  }
  for (Operation& operation : operations_) {
    const Turns& turn_of = turns.at(operation.stage);
    std::ranges::sort(operation.begun_at, {}, [&](const Place& place) { return turn_of.at(place.rank); });
  }
}

}  // namespace plumbline::schedule

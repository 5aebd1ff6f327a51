// For tests: schedules with halved backwards, derived from ones with whole backwards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::testing {

struct Halving {
  std::string name = "halved";
  /// How many of a stage's I may wait for their W, by rank; the rest follows at the end of a rank's list.
  std::function<int(int rank)> lag = [](int) { return INT_MAX; };
  bool descending = false;                   ///< at the end, the latest micro-batch first
  std::vector<int> whole_microbatches = {};  ///< whose B stay
};

inline schedule::Schedule halved(schedule::Schedule schedule, const Halving& how) {
  schedule.name += ", " + how.name;
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::vector<schedule::Action> out;
    std::map<int, std::deque<int>> waiting;  // by stage: micro-batches
    for (const schedule::Action& action : schedule.ranks[r]) {
      const auto& whole = how.whole_microbatches;
      if (action.type != schedule::ActionType::B ||
          std::find(whole.begin(), whole.end(), action.microbatch) != whole.end()) {
        out.push_back(action);
        continue;
      }
      out.push_back({action.stage, schedule::ActionType::I, action.microbatch});
      std::deque<int>& mine = waiting[action.stage];
      mine.push_back(action.microbatch);
      for (; static_cast<int>(mine.size()) > how.lag(static_cast<int>(r)); mine.pop_front())
        out.push_back({action.stage, schedule::ActionType::W, mine.front()});
    }
    for (auto& [stage, microbatches] : waiting) {
      if (how.descending) std::reverse(microbatches.begin(), microbatches.end());
      for (int m : microbatches) out.push_back({stage, schedule::ActionType::W, m});
    }
    schedule.ranks[r] = std::move(out);
  }
  return schedule;
}

/// One stage per rank; rank r begins with `warm_up(r)` forwards, then forwards and backwards alternate.
inline schedule::Schedule in_turns(int ranks, int microbatches, const std::function<int(int rank)>& warm_up) {
  schedule::Schedule schedule{"in turns", ranks, microbatches, {}, {}};
  for (int r = 0; r < ranks; ++r) {
    schedule.rank_of_stage.push_back(r);
    std::vector<schedule::Action>& actions = schedule.ranks.emplace_back();
    int forwards = 0;
    for (; forwards < std::min(microbatches, warm_up(r)); ++forwards)
      actions.push_back({r, schedule::ActionType::F, forwards});
    for (int m = 0; m < microbatches; ++m) {
      if (forwards < microbatches) actions.push_back({r, schedule::ActionType::F, forwards++});
      actions.push_back({r, schedule::ActionType::B, m});
    }
  }
  return schedule;
}

/// The order in which each stage accumulates the micro-batches; the same for all stages, or the test fails.
inline std::vector<int> accumulation_order(const schedule::Schedule& schedule) {
  std::map<int, std::vector<int>> of_stage;
  for (const auto& actions : schedule.ranks)
    for (const schedule::Action& action : actions)
      if (action.type == schedule::ActionType::B || action.type == schedule::ActionType::W)
        of_stage[action.stage].push_back(action.microbatch);
  for (const auto& [stage, order] : of_stage) EXPECT_EQ(order, of_stage.at(0)) << "stage " << stage;
  return of_stage.at(0);
}

}  // namespace plumbline::testing

#include "runtime/schedule/orders/play.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace plumbline::testing {
namespace {

using enum ActionType;
using Key = std::tuple<int, int, ActionType>;  // stage, micro-batch, kind

class Player {
 public:
  Player(const Schedule& schedule, const Durations& durations) : schedule_(schedule), durations_(durations) {}

  // When the action may start, if all it needs was done.
  std::optional<double> start(const Action& a, int rank, double free) const {
    std::vector<std::pair<int, std::vector<ActionType>>> needs;
    if (a.type == F && a.stage > 0) needs.push_back({a.stage - 1, {F}});
    if (a.type == I || a.type == B) {
      needs.push_back({a.stage, {F}});
      if (a.stage + 1 < schedule_.stages) needs.push_back({a.stage + 1, {I, B}});
    }
    if (a.type == W) needs.push_back({a.stage, {I}});
    double time = free;
    for (const auto& [stage, kinds] : needs) {
      bool found = false;
      for (const ActionType kind : kinds) {
        const auto done = ends_.find({stage, a.microbatch, kind});
        if (done == ends_.end()) continue;
        found = true;
        time = std::max(time, done->second + (schedule_.rank_of_stage[stage] == rank ? 0 : durations_.comm));
      }
      if (!found) return {};
    }
    return time;
  }

  double time_of(ActionType type) const {
    if (type == F) return durations_.forward;
    if (type == I) return durations_.input;
    if (type == W) return durations_.weight;
    return durations_.backward.value_or(durations_.input + durations_.weight);
  }

  Played run() {
    Played played;
    const int ranks = static_cast<int>(schedule_.ranks.size());
    std::vector<std::size_t> position(ranks, 0);
    std::vector<double> free(ranks, 0), begin(ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < ranks; ++r) {
        for (; position[r] < schedule_.ranks[r].size(); ++position[r]) {
          const Action& a = schedule_.ranks[r][position[r]];
          if (schedule_.rank_of_stage[a.stage] != r) played.problem = to_string(a) + " is on the wrong rank";
          const std::optional<double> at = start(a, r, free[r]);
          if (!at) break;
          if (position[r] == 0) begin[r] = *at;
          free[r] = *at + time_of(a.type);
          if (!ends_.insert({{a.stage, a.microbatch, a.type}, free[r]}).second)
            played.problem = to_string(a) + " twice";
          moved = true;
        }
      }
    }
    for (int r = 0; r < ranks; ++r) {
      if (position[r] < schedule_.ranks[r].size()) played.problem = "rank " + std::to_string(r) + " stands still";
      played.makespan = std::max(played.makespan, free[r]);
      played.longest = std::max(played.longest, free[r] - begin[r]);
    }
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (int m = 0; m < schedule_.microbatches; ++m) {
        const auto has = [&](ActionType type) { return ends_.contains({stage, m, type}); };
        if (!has(F) || has(B) == has(I) || has(I) != has(W)) {
          played.problem = "stage " + std::to_string(stage) + ", micro-batch " + std::to_string(m) + " is incomplete";
        }
      }
    }
    return played;
  }

 private:
  const Schedule& schedule_;
  const Durations& durations_;
  std::map<Key, double> ends_;
};

}  // namespace

Played play(const Schedule& schedule, const Durations& durations, double kept) {
  Played played = Player(schedule, durations).run();
  for (const auto& actions : schedule.ranks) {
    std::map<std::pair<int, ActionType>, int> last;
    double held = 0;
    for (const Action& a : actions) {
      held += a.type == F ? 1 : a.type == I ? kept - 1 : a.type == W ? -kept : -1;
      played.peak = std::max(played.peak, held);
      const auto [entry, first] = last.try_emplace({a.stage, a.type}, a.microbatch);
      if (!first && (a.type == B || a.type == W) && entry->second >= a.microbatch) played.ascending = false;
      entry->second = a.microbatch;
    }
  }
  return played;
}

}  // namespace plumbline::testing

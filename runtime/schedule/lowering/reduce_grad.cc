#include <map>
#include <optional>

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

// By rank: the number of micro-batches of each of its stages, over all their replicas, that it executes.
std::vector<std::map<int, int>> microbatches_by_stage(const Schedule& schedule) {
  std::vector<int> of_replica(schedule.replicas());
  if (schedule.replica_of_microbatch.empty()) of_replica[0] = schedule.microbatches;
  for (int replica : schedule.replica_of_microbatch) ++of_replica[replica];
  std::vector<std::map<int, int>> counts(schedule.ranks.size());
  for (std::size_t i = 0; i < schedule.rank_of_stage.size(); ++i)
    counts[schedule.rank_of_stage[i]][static_cast<int>(i) % schedule.stages] += of_replica[i / schedule.stages];
  return counts;
}

}  // namespace

Schedule add_reduce_grad(const Schedule& schedule, bool defer_wait) {
  require_in_place(schedule);
  Schedule result = schedule;
  std::vector<std::map<int, int>> missing_by_rank = microbatches_by_stage(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::map<int, int>& missing = missing_by_rank[rank];
    std::vector<Action> actions;
    std::optional<Action> pending;
    for_each_entry(schedule.ranks[rank], [&](Entry entry) {
      actions.insert(actions.end(), entry.begin(), entry.end());
      for (const Action& action : entry) {
        if ((action.type != W && action.type != B) || --missing[action.stage] != 0) continue;
        if (pending) actions.push_back(*pending);
        actions.push_back({action.stage, REDUCE_GRAD, kNoMicrobatch});
        pending = Action{action.stage, WAIT_REDUCE_GRAD, kNoMicrobatch};
        if (!defer_wait) {
          actions.push_back(*pending);
          pending.reset();
        }
      }
    });
    if (pending) actions.push_back(*pending);
    result.ranks[rank] = std::move(actions);
  }
  return result;
}

}  // namespace plumbline::schedule

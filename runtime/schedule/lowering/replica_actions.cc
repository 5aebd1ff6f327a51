#include "runtime/schedule/lowering/replica_actions.h"

#include <algorithm>
#include <set>

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline::schedule {
namespace {

/// The most stages that one entry of a list needs.
int stages_at_once(const Schedule& schedule) {
  std::size_t most = 1;
  for (const std::vector<Action>& actions : schedule.ranks)
    for_each_entry(actions, [&](Entry entry) {
      std::set<int> stages;
      for (const Action& action : entry) stages.insert(action.stage);
      most = std::max(most, stages.size());
    });
  return static_cast<int>(most);
}

/// Whether the two lists differ in micro-batches only.
bool same_but_for_microbatches(const std::vector<Action>& one, const std::vector<Action>& other) {
  return std::ranges::equal(one, other, [](const Action& a, const Action& b) {
    return a.stage == b.stage && a.type == b.type && a.overlaps_next == b.overlaps_next;
  });
}

bool replicas_agree(const Schedule& schedule) {
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const std::vector<int> ranks = ranks_of_stage(schedule, stage);
    for (const int rank : ranks)
      if (!same_but_for_microbatches(schedule.ranks[rank], schedule.ranks[ranks.front()])) return false;
  }
  return true;
}

}  // namespace

Schedule add_gathers(const Schedule& schedule, int max_active_stages, const std::vector<int>& lookahead) {
  if (replicas_agree(schedule)) return add_unshard_reshard(schedule, max_active_stages, lookahead);
  return add_unshard_reshard(schedule, schedule.stages, std::vector<int>(schedule.ranks.size(), schedule.stages));
}

Schedule add_sums(const Schedule& schedule, bool defer_wait) {
  const bool agree = replicas_agree(schedule);
  Schedule made = add_reduce_grad(schedule, defer_wait);
  if (agree) return made;
  for (std::vector<Action>& actions : made.ranks)
    std::erase_if(actions, [](const Action& action) { return action.type == ActionType::WAIT_REDUCE_GRAD; });
  return made;
}

Schedule with_replica_actions(const Schedule& compute, const ReplicaOptions& options) {
  if (compute.replicas() == 1) return compute;
  Schedule made = compute;
  const int most = stages_at_once(made);
  if (options.shard) made = add_gathers(made, most, std::vector<int>(made.ranks.size(), most));
  if (options.reduce_early) made = add_sums(made, /*defer_wait=*/true);
  return made;
}

}  // namespace plumbline::schedule

// The actions with which the ranks that hold the same stage, replicas of it, share its parameters and gradients.
#pragma once

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

struct ReplicaOptions {
  /// REDUCE_GRAD after the last backward of a stage, and WAIT_REDUCE_GRAD before the next REDUCE_GRAD or at the end of
  /// the list. False: the gradients are summed at the end of the step.
  bool reduce_early = false;
  /// UNSHARD and RESHARD around the uses of a stage's parameters: as few stages as the entries of the schedule allow
  /// are gathered at once.
  bool shard = false;
};

/// `compute`, a compute schedule, with the actions that `options` selects; unchanged if each stage is on one rank.
/// Throws InputError as the passes do (passes.h).
Schedule with_replica_actions(const Schedule& compute, const ReplicaOptions& options);

// Ranks that hold the same stage take part in each other's operations (collectives.h). If their lists differ in more
// than micro-batches, as in dualpipe, they reach their stages in different orders and would wait for one another.

/// add_unshard_reshard() (passes.h); for such ranks every stage is gathered from the beginning to its last use.
Schedule add_gathers(const Schedule& schedule, int max_active_stages, const std::vector<int>& lookahead);

/// add_reduce_grad() (passes.h); without WAIT_REDUCE_GRAD for such ranks, so that sums are awaited at the end of the
/// step.
Schedule add_sums(const Schedule& schedule, bool defer_wait);

}  // namespace plumbline::schedule

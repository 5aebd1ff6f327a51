// Lowering exactly as PyTorch 2.15 does it (PipelineScheduleMulti, _prepare_schedule_with_comms).
//
// Our engine uses lower() of lower.h instead, which is shorter and posts receives later. This lowering serves to run,
// show and compare PyTorch's schedules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// The options of PyTorch's constructors, with their names and defaults.
struct PytorchLowering {
  int max_active_stages = 3;
  std::string unshard_lookahead = "full";         ///< "full", "auto", a number, or one per rank, see passes.h
  bool defer_reduce_grad_wait = false;            ///< see add_reduce_grad
  bool defer_pp_recv = false;                     ///< apply defer_receives
  std::optional<int> max_outstanding_sends = {};  ///< of each rank; empty: unlimited
};

/// `compute` has only F, B, I, W. For a chain and one replica the result equals PyTorch's action by action; otherwise
/// it follows from the same rules (passes.h, replica_actions.h). Throws InputError for a schedule that cannot be
/// lowered this way, as PyTorch does, and for an option out of its range.
Schedule lower_as_pytorch(const Schedule& compute, const std::vector<StageEdge>& edges,
                          const PytorchLowering& options = {});

}  // namespace plumbline::schedule

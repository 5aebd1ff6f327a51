// Lowering exactly as PyTorch 2.15 does it (PipelineScheduleMulti, _prepare_schedule_with_comms).
//
// Our engine needs none of it: lower() of lower.h is shorter and posts receives later. This is for running, showing and
// comparing what PyTorch would run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// The knobs of PyTorch's constructors, by their names and with their defaults.
struct PytorchLowering {
  int max_active_stages = 3;
  std::string unshard_lookahead = "full";  ///< "full", "auto", a number, or one for each rank: see passes.h
  bool defer_reduce_grad_wait = false;
  bool defer_pp_recv = false;
  std::optional<int> max_outstanding_sends = {};
};

/// `compute` has only F, B, I, W. For the edges of a chain and one replica the result is PyTorch's, action by action;
/// for others it follows from the same rules (passes.h). Throws InputError for a schedule that cannot be lowered so, as
/// PyTorch does, and for a knob out of its range.
Schedule lower_as_pytorch(const Schedule& compute, const std::vector<StageEdge>& edges,
                          const PytorchLowering& options = {});

}  // namespace plumbline::schedule

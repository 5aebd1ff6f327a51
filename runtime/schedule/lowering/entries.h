// What the passes share: what an entry of a list is, an action's place in tables, and the two ends of a transfer.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// One action, or all members of a group, as for_each_entry has it.
using Entry = std::span<const Action>;

/// Throws InputError "schedule NAME: REASON".
[[noreturn]] inline void refuse(const Schedule& schedule, const std::string& reason) {
  throw InputError("schedule " + schedule.name + ": " + reason);
}

/// Throws InputError where the schedule's fields contradict one another (shape_problem), or an action names a stage or
/// micro-batch that is not there or stands on another rank than its stage: what tables by stage and micro-batch ask
/// for.
void require_in_place(const Schedule& schedule);

/// require_in_place, and that there are only F, B, I and W.
void require_compute_only(const Schedule& schedule);

/// The place of an action with a micro-batch in a table of stages x micro-batches.
inline std::size_t slot(const Schedule& schedule, const Action& action) {
  return static_cast<std::size_t>(action.stage) * schedule.microbatches + action.microbatch;
}

/// Calls visit(stage) for each stage on another rank with which a transfer is made: to which a send goes, from which a
/// receive comes.
template <class Visit>
void for_each_peer_stage(const Schedule& schedule, const StageGraph& graph, const Action& transfer, Visit visit) {
  const bool to_outputs = transfer.type == ActionType::SEND_F || transfer.type == ActionType::RECV_B;
  const int rank = schedule.rank_of(transfer.stage, transfer.microbatch);
  for (int stage : to_outputs ? graph.outputs(transfer.stage) : graph.inputs(transfer.stage)) {
    if (schedule.rank_of(stage, transfer.microbatch) != rank) visit(stage);
  }
}

/// The receive on the side of `stage` of a send.
inline Action receive_of(const Action& send, int stage) {
  return {stage, send.type == ActionType::SEND_F ? ActionType::RECV_F : ActionType::RECV_B, send.microbatch};
}

}  // namespace plumbline::schedule

// Shared by the passes: an entry of a list, an action's index in tables, and the two ends of a transfer.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// One action, or all members of a group, as for_each_entry visits it.
using Entry = std::span<const Action>;

/// Throws InputError "schedule NAME: REASON".
[[noreturn]] inline void refuse(const Schedule& schedule, const std::string& reason) {
  throw InputError("schedule " + schedule.name + ": " + reason);
}

/// Throws InputError "schedule NAME: rank 1, position 4 (1B0): REASON". The action must exist.
[[noreturn]] inline void refuse_at(const Schedule& schedule, std::size_t rank, std::size_t position,
                                   const std::string& reason) {
  const Place place{static_cast<int>(rank), static_cast<int>(position)};
  refuse(schedule, describe_position(schedule, place) + ": " + reason);
}

/// Throws InputError if the schedule's fields contradict one another (shape_problem), or if an action has a stage or
/// micro-batch that does not exist or is on another rank than its stage. Passes with tables by stage and micro-batch
/// call it first.
void require_in_place(const Schedule& schedule);

/// Calls require_in_place(), and throws InputError for an action other than F, B, I and W.
void require_compute_only(const Schedule& schedule);
/// The same, but also accepts OFFLOAD, RELOAD and actions of a whole stage.
void require_no_transport(const Schedule& schedule);

/// The index of an action with a micro-batch in a table of stages x micro-batches.
inline std::size_t slot(const Schedule& schedule, const Action& action) {
  return static_cast<std::size_t>(action.stage) * schedule.microbatches + action.microbatch;
}

/// Calls visit(stage) for each stage on another rank at the other end of a transfer: the receivers of a send, the
/// senders of a receive.
template <class Visit>
void for_each_peer_stage(const Schedule& schedule, const StageGraph& graph, const Action& transfer, Visit visit) {
  const bool to_outputs = transfer.type == ActionType::SEND_F || transfer.type == ActionType::RECV_B;
  const int rank = schedule.rank_of(transfer.stage, transfer.microbatch);
  for (int stage : to_outputs ? graph.outputs(transfer.stage) : graph.inputs(transfer.stage)) {
    if (schedule.rank_of(stage, transfer.microbatch) != rank) visit(stage);
  }
}

/// The receive of the message that `send` sends to `stage`.
inline Action receive_of(const Action& send, int stage) {
  return {stage, send.type == ActionType::SEND_F ? ActionType::RECV_F : ActionType::RECV_B, send.microbatch};
}

}  // namespace plumbline::schedule

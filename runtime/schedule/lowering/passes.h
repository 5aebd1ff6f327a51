// The passes that turn a compute schedule into the one that PyTorch 2.15 runs, one file each; lower_as_pytorch()
// applies them in PyTorch's order. Facts from torch.distributed.pipelining.schedules, where each is a private function.
// The result for a chain of stages equals PyTorch's cell by cell; here the passes are also defined for any edges and
// for replicas.
//
// All are linear in the number of actions (times the edges at their stages, where stated), treat a group as one entry,
// and throw InputError, one line, for a schedule that they cannot lower.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// Adjacent I and W of one stage and micro-batch become B (_merge_bw, which PyTorch's default path leaves out). Members
/// of groups are unchanged.
Schedule merge_backward_halves(const Schedule& compute);

/// UNSHARD before a stage's first use, RESHARD after its last (_add_unshard_reshard): before each entry, the next
/// `lookahead[rank]` distinct stages of the list are unsharded; stages that are not among the next `max_active_stages`
/// are resharded first. A group at the edge of that window counts as a whole, so a rank may exceed max_active_stages by
/// the size of the group less one. Refuses an entry with more than `max_active_stages` stages. Linear times
/// min(max_active_stages, stages on a rank).
Schedule add_unshard_reshard(const Schedule& schedule, int max_active_stages, const std::vector<int>& lookahead);

/// The lookahead of each rank: "full" is `max_active_stages`, "auto" is min(rank + 2, max_active_stages), a number
/// applies to all ranks, comma-separated numbers to one rank each; all from 1 to `max_active_stages`.
std::vector<int> unshard_lookahead(const std::string& text, int ranks, int max_active_stages);

/// REDUCE_GRAD after the last W or B of a stage on its rank; its WAIT_REDUCE_GRAD directly after it or, deferred,
/// before the next REDUCE_GRAD or at the end (_add_reduce_grad).
Schedule add_reduce_grad(const Schedule& schedule, bool defer_wait);

/// SEND directly after its computation (those of a group in the order of its members); RECV at that moment at the end
/// of the receiving rank's list. All ranks take turns, by ascending rank, and each executes one entry whose needs are
/// met (_add_send_recv). With several senders the first one's turn posts the RECV, and its user waits for all. Refuses
/// a schedule that stalls.
Schedule add_send_receive(const Schedule& schedule, const StageGraph& graph);

/// WAIT_SEND_F directly after the backward of the same stage and micro-batch, which proves that the activation arrived;
/// all other waits at the end, in the order of their sends (_add_wait_send).
Schedule add_send_waits(const Schedule& schedule);

/// Moves each RECV down to its user, except that the lower of two ranks posts its receives from the other before it
/// sends to it, so that the two never send to each other without a posted receive (_defer_recv_ops).
Schedule defer_receives(const Schedule& schedule, const StageGraph& graph);

/// Throws InputError unless every send has one wait after it, and every wait a send (_validate_send_waits).
void require_send_waits(const Schedule& schedule);

/// Moves waits up so that no rank has more than `most` sends without a wait (_add_wait_send_budget). Before a send that
/// would exceed the limit it inserts the first pending wait whose receives are certain to be posted by then, or else
/// the first that does not close a cycle of ranks; it refuses when none exists. For each rank that exceeds the limit:
/// linear in the number of actions.
Schedule limit_outstanding_sends(const Schedule& schedule, const StageGraph& graph, int most);

}  // namespace plumbline::schedule

// The passes that turn a compute schedule into the one that PyTorch 2.15 runs, one file each; lower_as_pytorch()
// applies them in PyTorch's order. Facts from torch.distributed.pipelining.schedules, where each pass is a private
// function, named in brackets below. The result for a chain of stages equals PyTorch's cell by cell; here the passes
// are also defined for any edges and for replicas.
//
// Every pass returns a new schedule, takes linear time in the number of actions and edges unless stated otherwise,
// treats a group as one entry, and throws InputError, one line, for a schedule that it cannot lower.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// Adds UNSHARD before a stage's first use and RESHARD after its last (_add_unshard_reshard). Before each entry, the
/// next `lookahead[rank]` distinct stages of the list are unsharded; stages that are not among the next
/// `max_active_stages` ones are resharded first. A group at the edge of that window counts as a whole, so a rank may
/// exceed max_active_stages by the size of the group less one. Throws InputError for an entry with more than
/// `max_active_stages` stages and for a `lookahead` without one number per rank. Linear times min(max_active_stages,
/// stages on a rank).
Schedule add_unshard_reshard(const Schedule& schedule, int max_active_stages, const std::vector<int>& lookahead);

/// Parses the lookahead of each rank: "full" is `max_active_stages`, "auto" is min(rank + 2, max_active_stages), a
/// number applies to all ranks, comma-separated numbers to one rank each; all from 1 to `max_active_stages`. Throws
/// InputError for any other text, and for max_active_stages < 1.
std::vector<int> unshard_lookahead(const std::string& text, int ranks, int max_active_stages);

/// Adds REDUCE_GRAD after the last W or B of a stage on its rank, and WAIT_REDUCE_GRAD directly after REDUCE_GRAD or,
/// if `defer_wait`, before the next REDUCE_GRAD or at the end (_add_reduce_grad).
Schedule add_reduce_grad(const Schedule& schedule, bool defer_wait);

/// Adds each SEND directly after its computation (those of a group in the order of its members), and at the same moment
/// the RECV at the end of the receiving rank's list so far. All ranks take turns, by ascending rank; in its turn a rank
/// executes its next entry if the needs of that entry are met (_add_send_recv). With several senders the turn of the
/// first posts the RECV, and the user of the data waits for all. Throws InputError for a schedule that stalls.
Schedule add_send_receive(const Schedule& schedule, const StageGraph& graph);

/// Adds WAIT_SEND_F directly after the backward of the same stage and micro-batch, which proves that the activation
/// arrived; all other waits at the end, in the order of their sends (_add_wait_send).
Schedule add_send_waits(const Schedule& schedule);

/// Moves each RECV down to its user, except that the lower of two ranks posts its receives from the higher before it
/// sends to the higher, so that the two never send to each other without a posted receive (_defer_recv_ops). Throws
/// InputError for a RECV without a user.
Schedule defer_receives(const Schedule& schedule, const StageGraph& graph);

/// Throws InputError unless every send has exactly one wait after it, and every wait a send (_validate_send_waits).
void require_send_waits(const Schedule& schedule);

/// Moves waits up so that no rank has more than `most` sends without a wait (_add_wait_send_budget). Before a send that
/// would exceed the limit it inserts the first pending wait whose receives are certain to be posted by then, or else
/// the first that does not close a cycle of ranks; throws InputError if there is none. For each rank that exceeds the
/// limit: linear in the number of actions.
Schedule limit_outstanding_sends(const Schedule& schedule, const StageGraph& graph, int most);

}  // namespace plumbline::schedule

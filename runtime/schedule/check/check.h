// Validates a schedule: every required action appears once, in an order that can run, and every send is received.
//
// The engine runs a valid schedule and refuses any other (require_valid). All checks are linear in the number of
// actions (times the edges at their stages). Messages count ranks and positions from 0, as in "rank 1, position 4
// (1B0)".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/schedule/check/send_model.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

struct CheckOptions {
  bool forward_only = false;  ///< the schedule must have no backward
  bool lowered = false;       ///< requires all sends and receives; implied if it has a send, receive or wait
  std::size_t limit = 100;    ///< at most so many violations are listed; a last entry counts the rest
  SendModel sends = {};       ///< how the transport completes sends, for the search for deadlocks
};

/// All violations, one line each; empty if the schedule is valid. If shape_problem() or an invalid edge prevents the
/// checks, that is the only violation. Otherwise a schedule is valid if:
/// - every stage and micro-batch has exactly one F and one B (or one I and one W; or no backward with forward_only), on
///   the rank that holds the stage in the micro-batch's replica, and there are no other computations;
/// - on a rank, a producer precedes its users: F before B and I, I before W, and along edges within the rank;
/// - the members of a group are computations, none needs another one, and the group ends before the list does;
/// - if lowered, every edge between ranks has its SEND, after its producer, and its RECV, before its consumer; a SEND
///   has at most one WAIT_SEND, after it;
/// - actions of a whole stage are on a rank that holds it: UNSHARD and RESHARD alternate, from an UNSHARD to a RESHARD,
///   and if there are any, all computations of the stage lie between them; REDUCE_GRAD at most once, after the last B
///   or W of its stage there; WAIT_REDUCE_GRAD at most once, after it; ranks that hold the same stage have as many
///   UNSHARD and REDUCE_GRAD of it;
/// - an OFFLOAD stands after the F of its stage and micro-batch and before the last action of its backward, and a
///   RELOAD after it; no B, I or W of them stands between the two, and each appears at most once;
/// - the ranks together reach the end of the step (deadlocks). Checked only if all else holds, since a missing action
///   also blocks ranks.
std::vector<std::string> violations(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                    const CheckOptions& options = {});

/// The reasons why the ranks do not all reach the end of the step; empty if they do. Either the cycle of ranks that
/// wait for one another (or the action that no rank executes), each with the action that it waits for; or each SEND
/// that is still incomplete when all lists are done (at most 100, then their number).
std::vector<std::string> deadlocks(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                   const SendModel& model);

/// The least number of buffers per channel with which the schedule reaches its end when a rank waits at each SEND
/// (SendModel::blocking), from 0 to `limit`, each of which is tried. Empty if none suffices or the schedule is
/// misshapen. A schedule that runs with some number of buffers runs with more.
std::optional<int> fewest_buffers(const Schedule& schedule, const std::vector<StageEdge>& edges, int limit);

/// The places at which a transport without tags would deliver a message to the wrong receive; at most 100, then their
/// number. On each channel (from one rank to another, forward and backward together) the messages must be received in
/// the order of sending. A SEND sends to its receiving stages in ascending order, a RECV receives from its sending
/// stages in ascending order; a message is not divided. Only the first differing pair of each channel is reported;
/// misplaced actions (see violations) are ignored. Memory: about 20 bytes for each message and end.
std::vector<std::string> channel_order_violations(const Schedule& schedule, const std::vector<StageEdge>& edges);

/// Throws InputError with the schedule's name and the first violation.
void require_valid(const Schedule& schedule, const std::vector<StageEdge>& edges, const CheckOptions& options = {});

}  // namespace plumbline::schedule

// What is wrong with a schedule: is every action there once, in an order that can run, with every send received?
//
// The engine runs what passes and refuses the rest (require_valid). All of it is linear in the number of actions (times
// the edges at their stages). Messages count ranks and positions from 0, as in "rank 1, position 4 (1B0)".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/schedule/check/send_model.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

struct CheckOptions {
  bool forward_only = false;   ///< no backward belongs to this schedule
  bool lowered = false;        ///< must have its sends and receives; one that has any is held to that in any case
  std::size_t limit = 100;     ///< this many violations are told, then how many more there are
  bool channel_order = false;  ///< also for transports without tags: see channel_order_violations
  SendModel sends = {};        ///< how the transport completes sends, for the search for deadlocks
};

/// All violations, empty when there are none:
/// - every stage and micro-batch has exactly one F and one B (or one I and one W; or no backward with forward_only), on
///   the rank that holds the stage in the micro-batch's replica, and nothing else is there;
/// - on a rank, what is used comes after what makes it: F before B and I, I before W, and along edges within the rank;
/// - groups have only computations as members, of which none needs another one, and end before the list does;
/// - lowered: every edge between ranks has its SEND, after its producer, and its RECV, before its consumer; a SEND has
///   at most one WAIT_SEND, after it;
/// - what is done for a whole stage stands on a rank that holds it: UNSHARD and RESHARD in turn, from an UNSHARD to a
///   RESHARD, and where there are any, all computations of the stage between them; REDUCE_GRAD at most once, after the
///   last B or W of its stage there; WAIT_REDUCE_GRAD at most once, after it;
/// - with channel_order, what channel_order_violations finds;
/// - the ranks together reach the end of the step (deadlocks). Looked at only when all else holds: a rank that waits
///   for an action that is missing is no second fault.
std::vector<std::string> violations(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                    const CheckOptions& options = {});

/// Why the ranks do not all reach the end of the step: the cycle of ranks that wait for one another (or the action that
/// nobody does), each with what it waits for; and each SEND that is still incomplete once all lists are done.
std::vector<std::string> deadlocks(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                   const SendModel& model);

/// How many buffers for each channel the schedule must have to reach its end where a rank waits at each SEND
/// (SendModel::blocking): the least number out of 0 to `limit`, each of which is tried. Empty when none is enough or
/// the schedule is misshapen. What runs with some number of buffers runs with more.
std::optional<int> fewest_buffers(const Schedule& schedule, const std::vector<StageEdge>& edges, int limit);

/// Where a transport without tags would hand a message to the wrong receive: on each channel, that is, from one rank to
/// another, forward and backward together, the messages must be received in the order of sending. A SEND sends to its
/// receiving stages in ascending order, a RECV takes from its sending stages in ascending order; a message is not
/// divided. Of each channel only the first pair that differs is told; actions in places where they do not belong (see
/// violations) are left out. Memory: about 20 bytes for each message and end.
std::vector<std::string> channel_order_violations(const Schedule& schedule, const std::vector<StageEdge>& edges);

/// Throws InputError with the schedule's name and the first violation.
void require_valid(const Schedule& schedule, const std::vector<StageEdge>& edges, const CheckOptions& options = {});

}  // namespace plumbline::schedule

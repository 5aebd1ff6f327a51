// What is wrong with a schedule: is every action there once, in an order that can run, with every send received?
//
// The engine runs what passes and refuses the rest (require_valid). All of it is linear in the number of actions.
// Messages count ranks and positions from 0, as in "rank 1, position 4 (1B0)".
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline {

struct CheckOptions {
  bool forward_only = false;  ///< no backward belongs to this schedule
  bool lowered = false;       ///< must have its sends and receives; one that has any is held to that in any case
  std::size_t limit = 100;    ///< this many violations are told, then how many more there are
};

/// All violations, empty when there are none:
/// - every stage and micro-batch has exactly one F and one B (or one I and one W; or no backward with forward_only), on
///   the rank that holds the stage, and nothing else is there;
/// - on a rank, what is used comes after what makes it: F before B and I, I before W, and along edges within the rank;
/// - lowered: every edge between ranks has its SEND, after its producer, and its RECV, before its consumer;
/// - the ranks together reach their ends (deadlocks with SendModel::Rendezvous). Looked at only when all else holds: a
///   rank that waits for an action that is missing is no second fault.
std::vector<std::string> violations(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                    const CheckOptions& options = {});

/// How a transport completes sends. Neither makes a rank wait at the SEND: the step waits for its sends at its end.
enum class SendModel {
  Buffered,    ///< a send completes by itself
  Rendezvous,  ///< a send completes once the matching receive was posted
};

/// Why the ranks do not all reach the end of the step: the cycle of ranks that wait for one another (or the action that
/// nobody does), and, with Rendezvous, each SEND whose receive is never posted. Since no rank waits at a SEND, a
/// schedule whose sends and receives pair up ends under both models or under neither.
std::vector<std::string> deadlocks(const Schedule& schedule, const std::vector<StageEdge>& edges, SendModel model);

/// Throws InputError with the schedule's name and the first violation.
void require_valid(const Schedule& schedule, const std::vector<StageEdge>& edges, const CheckOptions& options = {});

}  // namespace plumbline

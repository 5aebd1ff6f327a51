// For tests: a slow judge of any schedule, which shares no code with check.h, replay.h and their helpers.
//
// It works on sets of texts, and retries every rank again and again.
#pragma once

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::testing {

inline constexpr int kEndlessBuffers = std::numeric_limits<int>::max();

using Texts = std::multiset<std::string>;

/// Whether all needs of the action are `done`, on this or any other rank. `lowered` means that values that cross ranks
/// must be sent and received. WAIT_SEND needs the receives of its send.
bool can_run(const schedule::Action& action, const schedule::Schedule& schedule,
             const std::vector<schedule::StageEdge>& edges, bool lowered, const Texts& done);

/// Some action is a send, a receive or a wait for a send.
bool is_lowered(const schedule::Schedule& schedule);

/// Every computation appears once on its rank; with `lowered` every send and receive too, with at most one wait for
/// each send; groups are well-formed; actions of whole stages are in order. Does not judge the order of actions of
/// micro-batches.
bool is_complete(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges, bool forward_only,
                 bool lowered);

/// Whether all ranks reach the end of the step with `buffers` for each channel, when a rank waits at its SENDs
/// (`blocking`) or at its WAIT_SENDs and its end. Every action must appear at most once, on its own rank.
bool reaches_its_end(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges, int buffers,
                     bool blocking);

/// Complete, and reaches its end with rendezvous sends at which no rank waits.
bool runs_to_its_end(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges,
                     bool forward_only, bool lowered);

/// From each rank to each other the messages are received in the order of sending.
bool keeps_channel_order(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges);

}  // namespace plumbline::testing

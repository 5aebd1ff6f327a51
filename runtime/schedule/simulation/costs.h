// What a step costs: the time of its actions, the links between its ranks, the memory of its activations.
//
// Times, bytes and bandwidths may be in any units that fit one another (ms, MB and MB per ms).
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/schedule/orders/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

struct Link {
  double latency = 0;                                          ///< added to every message; occupies nobody
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per unit of time, above 0
};

/// How messages travel. There is one for each edge between stages on different ranks, micro-batch and direction. It is
/// sent when its action (its group) ends and arrives bytes / bandwidth + latency + the `comm` of its stage's durations
/// later.
struct Links {
  Link all = {};
  std::map<std::pair<int, int>, Link> of_ranks = {};  ///< from which rank to which, where that link is another
  /// What a stage's outputs are in bytes, and their gradients on the way back: one for all stages or one per stage.
  /// Over each of the step's edges travels that much, and what is skipped over it (StepCosts::skips) beside it.
  std::vector<double> bytes = {0};
  /// False: only delays, as in the tables of papers. True: the messages from one rank to another travel one after the
  /// other, each for bytes / bandwidth, in the order in which they are sent.
  bool occupied = false;
  /// How many messages from one rank to another may be sent and not yet taken by the action that needs them; before one
  /// more, the sending rank stands still. 0: any number.
  int buffers = 0;
};

/// What one micro-batch's activations of a stage take: held from the begin of F to the end of B or W.
struct StageMemory {
  double activation = 1;
  /// Of that, what W needs; the rest is let go when I ends (M_W beside M_B in the zero-bubble papers). All of it where
  /// it is not given.
  std::optional<double> weight_part = {};
};

/// A tensor that a stage stashes for a later one, which pops it; its gradient goes back the same way. Between ranks it
/// travels straight from one to the other, over an edge that the step has because of it, or in the message of an edge
/// that the step has anyway. Memory that it takes beside the activations of the two stages:
/// - on the rank that pops it, from its arrival (within a rank, from the end of the F that makes it) to the end of the
///   popping stage's B or W for the micro-batch; in a forward-only step to the end of its F;
/// - on the rank that makes it, from the end of that F until the link has carried it.
/// At any moment, what ended is let go before what begins is held.
struct Skip {
  StageEdge edge = {};
  double bytes = 0;
  /// Of that, what W of the stage that pops it needs; the rest is let go when I ends. All of it where it is not given.
  std::optional<double> weight_part = {};
};

/// How long a group takes, from its members and the sum of their times; not below 0.
using GroupTime = std::function<double(std::span<const Action> members, double sum)>;

struct StepCosts {
  std::vector<Durations> durations = {Durations{}};  ///< one for all stages or one per stage
  GroupTime group_time = {};                         ///< where it is not given, the sum
  Links links = {};
  std::vector<StageMemory> memory = {StageMemory{}};  ///< one for all stages or one per stage
  /// Stage 0 has nobody to send gradients to, so that a runtime may put its whole backward off: its I takes no time and
  /// its W takes input + weight. On for what real runs are compared with (ours does so); off for papers' tables.
  bool first_stage_defers = false;
  std::vector<Skip> skips = {};  ///< of several over one edge all are carried and held
};

/// The edges that a step with these skips has: those given and those of the skips, each once.
std::vector<StageEdge> with_skips(std::vector<StageEdge> edges, const std::vector<Skip>& skips);

/// Throws InputError for numbers of entries that are neither 1 nor the schedule's stages, for times that are not finite
/// or below 0 (F: not above 0), bandwidths not above 0, bytes and activations below 0, weight parts above the
/// activation or the skip, links of ranks that do not exist, fewer than 0 buffers.
void require_costs(const Schedule& schedule, const StepCosts& costs);

/// The entry of a stage in a list with one for all or one per stage.
template <class T>
const T& of_stage(const std::vector<T>& list, int stage) {
  return list[list.size() == 1 ? 0 : stage];
}

/// How long a computation takes by itself.
double time_of(const StepCosts& costs, const Action& action);

/// How long a group takes, or an action that stands alone.
double time_of(const StepCosts& costs, std::span<const Action> members);

const Link& link_of(const StepCosts& costs, int from_rank, int to_rank);

/// How much later a message arrives than the link has carried it. `producer`: the stage that made it.
inline double latency(const StepCosts& costs, const Link& link, int producer) {
  return link.latency + of_stage(costs.durations, producer).comm;
}

}  // namespace plumbline::schedule

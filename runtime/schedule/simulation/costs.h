// The costs of a step: the times of its actions, the links between its ranks, the memory of its activations.
//
// Times, bytes and bandwidths may be in any consistent units (ms, MB and MB per ms).
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/schedule/orders/timed/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// The connection from one rank to another.
struct Link {
  double latency = 0;  ///< added to the travel of every message; does not occupy the link
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per unit of time, above 0
};

/// How messages travel. There is one message for each edge between stages on different ranks, micro-batch and
/// direction. It is sent when its action (or the action's group) ends and arrives bytes / bandwidth + latency + the
/// `comm` of its stage's durations later; more if the link is occupied or no buffer is free.
struct Links {
  Link all = {};
  std::map<std::pair<int, int>, Link> of_ranks = {};  ///< by (sending, receiving) rank; other links: `all`
  /// The size of a stage's outputs in bytes, and of their gradients on the way back: one entry for all stages or one
  /// per stage. Each of the step's edges carries so many bytes plus those of the skips over it (StepCosts::skips).
  std::vector<double> bytes = {0};
  /// False: a message does not delay others, as in the tables of papers. True: the messages from one rank to another
  /// travel one after the other, each for bytes / bandwidth, in the order in which they are sent.
  bool occupied = false;
  /// The number of messages from one rank to another that may be sent while the actions that need them have not begun;
  /// a rank that sends one more blocks first. 0: any number.
  int buffers = 0;
};

/// The memory of the activations of one stage and micro-batch, held from the beginning of F to the end of B or W, but
/// not from the end of an OFFLOAD's transfer to the beginning of the RELOAD's.
struct StageMemory {
  double activation = 1;  ///< in bytes, or any other unit
  /// The part of `activation` that W needs (in the zero-bubble papers M_W, of M_B); the rest is freed when I ends. By
  /// default all of `activation`.
  std::optional<double> weight_part = {};
};

/// A tensor that a stage stashes for a later stage, which pops it; its gradient returns the same way. Between ranks the
/// tensor travels directly from one stage to the other, in the message of an edge of the step or, if there is none,
/// over a separate edge. The tensor takes memory beside the activations of the two stages:
/// - on the rank that pops it, from its arrival (within a rank, from the end of the F that makes it) to the end of the
///   popping stage's B or W for the micro-batch; in a forward-only step to the end of its F;
/// - on the rank that makes it, from the end of that F until the link has carried it.
///
/// Of changes at the same moment, memory is freed before other memory is held.
struct Skip {
  StageEdge edge = {};
  double bytes = 0;
  /// The part of `bytes` that W of the popping stage needs; the rest is freed when I ends. By default all of `bytes`.
  std::optional<double> weight_part = {};
};

struct StepCosts;

/// Returns the time of a group, finite and at least 0, given its members and the sum of their times by `costs`.
using GroupTime = std::function<double(const StepCosts& costs, std::span<const Action> members, double sum)>;

struct StepCosts {
  std::vector<Durations> durations = {Durations{}};  ///< one for all stages or one per stage
  GroupTime group_time = {};                         ///< empty: the sum of the members' times
  Links links = {};
  std::vector<StageMemory> memory = {StageMemory{}};  ///< one for all stages or one per stage
  /// Stage 0 sends no gradients, so a runtime may defer its whole backward: its I takes no time and its W takes input +
  /// weight. True for comparison with real runs (our engine defers it); false for papers' tables.
  bool first_stage_defers = false;
  std::vector<Skip> skips = {};  ///< several may share an edge; all are carried and held
};

/// The given edges and those of the skips; if there are skips, sorted and each once.
std::vector<StageEdge> with_skips(std::vector<StageEdge> edges, const std::vector<Skip>& skips);

/// Throws InputError for a list that has neither 1 entry nor one per stage of the schedule; for times that are not
/// finite or below 0 (F: not above 0), bandwidths not above 0, bytes and activations that are not finite or below 0,
/// weight parts above the activation or the skip, links of ranks that do not exist, and fewer than 0 buffers. Does not
/// check group_time and the edges of skips.
void require_costs(const Schedule& schedule, const StepCosts& costs);

/// The entry of a stage in a list that has one for all stages or one per stage.
template <class T>
const T& of_stage(const std::vector<T>& list, int stage) {
  return list[list.size() == 1 ? 0 : stage];
}

/// The time that an action, outside any group, takes on its rank; 0 for all but F, B, I and W.
double time_of(const StepCosts& costs, const Action& action);

/// The time of a group, or of a single action. Throws InputError if group_time returns a time that is not finite or
/// below 0.
double time_of(const StepCosts& costs, std::span<const Action> members);

/// The time of a group whose forwards and backwards overlap: the longer of the two sums, and of the shorter the part
/// that is not hidden, 1 - `share` of it; 0 <= share <= 1.
GroupTime hiding_shorter(double share);

/// The link from one rank to another: that of Links::of_ranks, else Links::all.
const Link& link_of(const StepCosts& costs, int from_rank, int to_rank);

/// The delay between the end of a message's use of the link and its arrival. `producer` is the stage whose result the
/// message carries.
inline double latency(const StepCosts& costs, const Link& link, int producer) {
  return link.latency + of_stage(costs.durations, producer).comm;
}

}  // namespace plumbline::schedule

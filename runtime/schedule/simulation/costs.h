// The costs of a step: the time of its actions, the links between its ranks, the memory of its activations.
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

#include "runtime/schedule/orders/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

struct Link {
  double latency = 0;                                          ///< added to every message; occupies no link
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per unit of time, above 0
};

/// How messages travel. There is one for each edge between stages on different ranks, micro-batch and direction. It is
/// sent when its action (its group) ends and arrives bytes / bandwidth + latency + the `comm` of its stage's durations
/// later.
struct Links {
  Link all = {};
  std::map<std::pair<int, int>, Link> of_ranks = {};  ///< by (sender, receiver): links that differ from `all`
  /// The size of a stage's outputs in bytes, and of their gradients on the way back: one for all stages or one per
  /// stage. Each of the step's edges carries that many bytes plus those of the skips over it (StepCosts::skips).
  std::vector<double> bytes = {0};
  /// False: messages only delay, as in the tables of papers. True: the messages from one rank to another travel one
  /// after the other, each for bytes / bandwidth, in the order in which they are sent.
  bool occupied = false;
  /// How many messages from one rank to another may be sent and not yet consumed by the action that needs them; the
  /// sending rank blocks before one more. 0: any number.
  int buffers = 0;
};

/// The memory of one micro-batch's activations of a stage: held from the beginning of F to the end of B or W.
struct StageMemory {
  double activation = 1;
  /// The part of `activation` that W needs; the rest is freed when I ends (M_W beside M_B in the zero-bubble papers).
  /// All of it by default.
  std::optional<double> weight_part = {};
};

/// A tensor that a stage stashes for a later one, which pops it; its gradient goes back the same way. Between ranks it
/// travels directly from one to the other, over an edge that exists because of it, or in the message of an edge that
/// the step has anyway. It takes memory beside the activations of the two stages:
/// - on the rank that pops it, from its arrival (within a rank, from the end of the F that makes it) to the end of the
///   popping stage's B or W for the micro-batch; in a forward-only step to the end of its F;
/// - on the rank that makes it, from the end of that F until the link has carried it.
///
/// At any moment, memory that ends is freed before memory that begins is held.
struct Skip {
  StageEdge edge = {};
  double bytes = 0;
  /// The part of `bytes` that W of the popping stage needs; the rest is freed when I ends. All of it by default.
  std::optional<double> weight_part = {};
};

/// The time of a group, from its members and the sum of their times; at least 0.
using GroupTime = std::function<double(std::span<const Action> members, double sum)>;

struct StepCosts {
  std::vector<Durations> durations = {Durations{}};  ///< one for all stages or one per stage
  GroupTime group_time = {};                         ///< by default the sum
  Links links = {};
  std::vector<StageMemory> memory = {StageMemory{}};  ///< one for all stages or one per stage
  /// Stage 0 sends no gradients, so a runtime may defer its whole backward: its I takes no time and its W takes input +
  /// weight. On for comparison with real runs (ours defers it); off for papers' tables.
  bool first_stage_defers = false;
  std::vector<Skip> skips = {};  ///< several over one edge are all carried and held
};

/// The edges of a step with these skips: the given ones and those of the skips, each once.
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

/// The time of a computation by itself.
double time_of(const StepCosts& costs, const Action& action);

/// The time of a group, or of a single action.
double time_of(const StepCosts& costs, std::span<const Action> members);

const Link& link_of(const StepCosts& costs, int from_rank, int to_rank);

/// The delay between the end of a message's use of the link and its arrival. `producer`: the stage that made it.
inline double latency(const StepCosts& costs, const Link& link, int producer) {
  return link.latency + of_stage(costs.durations, producer).comm;
}

}  // namespace plumbline::schedule

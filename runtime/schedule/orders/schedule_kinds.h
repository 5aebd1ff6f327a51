// The schedules by name: descriptions, parameters and generators.
//
// A generator returns the order of computations; lower.h adds transfers, and check.h validates that a schedule can run.
// A generator throws InputError with the reason for impossible numbers and never adjusts them. Variants that share a
// name elsewhere have different names here. In every generated schedule each stage executes its B and its W by
// ascending micro-batch unless the kind's summary states otherwise: floating-point sums depend on that order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/schedule/orders/timed/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// The parameters of a schedule. Comments write P for the number of ranks, M for that of micro-batches and V for that
/// of stages on a rank. A field that a schedule does not use must keep its default: otherwise make_schedule() throws
/// InputError.
struct ScheduleRequest {
  std::string name = {};    ///< of a ScheduleKind, in upper or lower case
  int ranks = 1;            ///< at least 1
  int microbatches = 1;     ///< at least 1: the number of parts of the batch (for seq1f1b: slices of all sequences)
  int stages_per_rank = 0;  ///< 0: ScheduleKind::stages_per_rank
  int group_size = 0;       ///< consecutive micro-batches of one stage (interleaved-1f1b); 0: the schedule's rule
  int slices = 0;           ///< the slices of a sequence, which depend on one another (seq1f1b); 0: 2
  /// The durations, for schedules that depend on them (zb-auto, zb-v-greedy, hanayo); by default see
  /// measured_durations().
  std::optional<Durations> durations = {};
  /// The most activations that a rank may hold, in micro-batches through all of its stages (zb-auto, hanayo); 0: P.
  double memory_limit = 0;
  /// The share of a micro-batch's activations that is kept between its I and its W (zb-auto, zb-v-greedy); 0.5 by
  /// default.
  std::optional<double> weight_memory = {};
};

/// The fields of a request, besides name, ranks and micro-batches, that a schedule uses; combined by |.
enum Takes : unsigned {
  kNothing = 0,
  kStagesPerRank = 1,
  kGroupSize = 2,
  kSlices = 4,
  kDurations = 8,
  kMemoryLimit = 16,
  kWeightMemory = 32
};

struct ScheduleKind {
  std::string_view name;
  std::string_view summary;      ///< for --help: strengths and weaknesses, in a line or two
  std::string_view placement;    ///< "stage s on rank s", ...
  std::string_view constraints;  ///< the accepted numbers; "none" if all are accepted
  std::string_view source;       ///< paper (arXiv number) or project, and the differences from it
  int stages_per_rank;           ///< the default
  unsigned takes;                ///< values of Takes, combined by |
  /// The generator. Its argument must satisfy the checks of make_schedule() and have stages_per_rank filled in.
  Schedule (*make)(const ScheduleRequest& request);
};

/// All kinds, in display order. Valid for the whole program.
std::span<const ScheduleKind> schedule_kinds();

/// The names of all kinds, in display order.
std::vector<std::string> schedule_names();

/// The kind of that name, in upper or lower case; null if there is none. Valid for the whole program.
const ScheduleKind* find_schedule_kind(std::string_view name);

/// The kind of that name. Throws InputError, one line that lists the names, if there is none.
const ScheduleKind& schedule_kind(std::string_view name);

/// The most stages x micro-batches of a schedule that is generated: positions are int, and no realistic request exceeds
/// this.
inline constexpr std::int64_t kMostForwards = std::int64_t{1} << 27;

/// Makes a compute schedule. Throws InputError, one line, for an unknown name, for numbers below 1, for more than
/// kMostForwards, for fields that the schedule does not use, and for numbers that its generator refuses.
Schedule make_schedule(const ScheduleRequest& request);

/// The same with defaults for all other fields.
Schedule make_schedule(const std::string& name, int ranks, int microbatches);

}  // namespace plumbline::schedule

// The schedules by name: descriptions, parameters and generators.
//
// A generator gives the order of computations; lower.h adds transfers, check.h validates that it can run. A generator
// refuses impossible numbers with the reason and never adjusts them. Variants that share a name elsewhere have
// different names here. In every generated schedule each stage executes its B and its W by ascending micro-batch unless
// its summary states otherwise: floating-point sums depend on it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/schedule/orders/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// The parameters of a schedule; below, P ranks, M micro-batches and V stages on a rank. A field that a schedule does
/// not use must keep its default: a generator refuses it otherwise.
struct ScheduleRequest {
  std::string name = {};
  int ranks = 1;            ///< at least 1
  int microbatches = 1;     ///< at least 1: the parts that the batch is divided into (with slices: all slices)
  int stages_per_rank = 0;  ///< 0: the schedule's default: 1, or 2 if it needs several
  int group_size = 0;       ///< consecutive micro-batches of one stage (interleaved-1f1b); 0: the schedule's rule
  int slices = 0;           ///< parts of a sequence that depend on one another (seq1f1b); 0: 2
  /// The durations for schedules that depend on them (zb-auto, zb-v-greedy, hanayo, ...).
  std::optional<Durations> durations = {};
  /// Most activations a rank may hold, in micro-batches through all of its stages (zb-auto, hanayo); 0 means P.
  double memory_limit = 0;
  /// The share of a micro-batch's activations that is kept between its I and its W (zb-auto, zb-v-greedy); 0.5 by
  /// default.
  std::optional<double> weight_memory = {};
};

/// The fields of a request, beside name, ranks and micro-batches, that a schedule uses; combined by |.
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
  std::string_view summary;      ///< for --help: its strengths and weaknesses, in a line or two
  std::string_view placement;    ///< "stage s on rank s", ...
  std::string_view constraints;  ///< "none", or the accepted numbers
  std::string_view source;       ///< paper (arXiv number) or project, and the differences from it
  int stages_per_rank;           ///< the default
  unsigned takes;                ///< a combination of Takes
  /// The argument is a valid request with stages_per_rank filled in.
  Schedule (*make)(const ScheduleRequest& request);
};

/// All of them, in display order.
std::span<const ScheduleKind> schedule_kinds();

std::vector<std::string> schedule_names();

/// The kind of that name, in upper or lower case; null when there is none.
const ScheduleKind* find_schedule_kind(std::string_view name);

/// The same. Throws InputError, one line, that lists the names.
const ScheduleKind& schedule_kind(std::string_view name);

/// A compute schedule. Throws InputError, one line, for an unknown name, for numbers below 1, for more than 2^27 stages
/// x micro-batches, and for what the schedule cannot do.
Schedule make_schedule(const ScheduleRequest& request);

/// The same with defaults for all other fields.
Schedule make_schedule(const std::string& name, int ranks, int microbatches);

}  // namespace plumbline::schedule

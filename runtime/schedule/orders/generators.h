// The schedules by name: what each is, what it asks for, and who makes it.
//
// A generator gives the order of computations; lower.h adds transfers, check.h says whether it can run. What a schedule
// cannot do is refused with the reason, never adjusted. Variants that go by one name elsewhere have different names
// here. Every generator lets each stage do its B and its W by ascending micro-batch unless its summary says otherwise:
// floating-point sums depend on it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/schedule/orders/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// What a schedule is wanted for; below, P ranks, M micro-batches and V stages on a rank. A field that a schedule has
/// no use for must be left as it is: it is refused, not ignored.
struct ScheduleRequest {
  std::string name = {};
  int ranks = 1;            ///< at least 1
  int microbatches = 1;     ///< at least 1: the parts that the batch is divided into (with slices: all slices)
  int stages_per_rank = 0;  ///< 0: what the schedule has by itself, which is 1, or 2 where it needs several
  int group_size = 0;       ///< micro-batches in a row for one stage (interleaved-1f1b); 0: the schedule's rule
  int slices = 0;           ///< parts of a sequence that depend on one another (seq1f1b); 0: 2
  /// How long things take, for schedules made to measure (zb-auto, zb-v-greedy, hanayo, ...).
  std::optional<Durations> durations = {};
  /// Most activations a rank may hold, in micro-batches through all of its stages (zb-auto, hanayo); 0: P.
  double memory_limit = 0;
  /// Which part of a micro-batch's activations is kept between its I and its W (zb-auto, zb-v-greedy): 0.5 where it is
  /// not given.
  std::optional<double> weight_memory = {};
};

/// The fields of a request, beside name, ranks and micro-batches, that a schedule has a use for; to be combined by |.
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
  std::string_view summary;      ///< for --help: what is good and bad about it, in a line or two
  std::string_view placement;    ///< "stage s on rank s", ...
  std::string_view constraints;  ///< "none", or what is refused
  std::string_view source;       ///< paper (arXiv number) or project, and what differs from it
  int stages_per_rank;           ///< where the request does not say
  unsigned takes;                ///< of Takes
  /// Gets a request that is in range, with stages_per_rank filled in.
  Schedule (*make)(const ScheduleRequest& request);
};

/// All of them, in the order in which they are shown.
std::span<const ScheduleKind> schedule_kinds();

std::vector<std::string> schedule_names();

/// The kind of that name, in upper or lower case; null where there is none.
const ScheduleKind* find_schedule_kind(std::string_view name);

/// The same. Throws InputError, one line, that lists the names.
const ScheduleKind& schedule_kind(std::string_view name);

/// A compute schedule. Throws InputError, one line, for an unknown name, for numbers below 1, for more than 2^27 stages
/// x micro-batches, and for what the schedule cannot do.
Schedule make_schedule(const ScheduleRequest& request);

/// The same with all else as the schedule has it by itself.
Schedule make_schedule(const std::string& name, int ranks, int microbatches);

}  // namespace plumbline::schedule

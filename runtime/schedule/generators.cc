#include "runtime/schedule/generators.h"

#include <algorithm>
#include <cstdint>

#include "runtime/error.h"
#include "runtime/join.h"
#include "runtime/schedule/orders/one_stage.h"
#include "runtime/schedule/orders/order.h"
#include "runtime/schedule/orders/v_greedy.h"
#include "runtime/schedule/orders/v_pattern.h"
#include "runtime/schedule/orders/waves.h"
#include "runtime/schedule/orders/zero_bubble_auto.h"

namespace plumbline {
namespace {

constexpr std::string_view kOneStage = "stage s on rank s";
constexpr std::string_view kV = "stage s < P on rank s, the others on rank 2P-1-s";

const ScheduleKind kKinds[] = {
    {.name = "gpipe",
     .summary = "all forwards, then all backwards: every rank holds the activations of all M micro-batches",
     .placement = kOneStage,
     .constraints = "none",
     .source = "Huang et al., arXiv 1811.06965; torchgpipe does the backwards in descending order",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = gpipe},
    {.name = "1f1b",
     .summary = "rank r does min(M, P-1-r) forwards, then forward and backward in turn: gpipe's bubble, at most P - r "
                "activations",
     .placement = kOneStage,
     .constraints = "none",
     .source = "PipeDream-flush, Narayanan et al., arXiv 2006.09503; also called DAPPLE",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = one_f_one_b},
    {.name = "zb-h1",
     .summary = "backwards in halves, W put off by r: a third of 1f1b's bubble where F = I = W, at most P activations",
     .placement = kOneStage,
     .constraints = "none",
     .source =
         "Qi et al., arXiv 2401.10241, section 2.2; PyTorch's ScheduleInterleavedZeroBubble with one stage a rank",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = zb_h1},
    {.name = "zb-h2",
     .summary = "as zb-h1 with more forwards first: from M = 2P-1 on no rank waits once it has begun, for up to 2P-1 "
                "activations; pays where a rank may enter the next step before the others end this one",
     .placement = kOneStage,
     .constraints = "none",
     .source = "Qi et al., arXiv 2401.10241, section 2.2",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = zb_h2},
    {.name = "zb-auto",
     .summary = "a zero-bubble order made for given durations and a memory limit (P as for zb-h1; with 2P hardly a "
                "bubble): the best of eight greedy ones, zb-h1 and zb-h2",
     .placement = kOneStage,
     .constraints = "a memory limit of at least 1",
     .source = "Qi et al., arXiv 2401.10241, section 3 (ZB-1p, ZB-2p), without its integer program",
     .stages_per_rank = 1,
     .takes = kDurations | kMemoryLimit | kWeightMemory,
     .make = zb_auto},
    {.name = "zb-v-greedy",
     .summary = "two stages on a rank, made for given durations: from M = 2P-1 on no rank waits where F = I = W, in "
                "1f1b's memory",
     .placement = kV,
     .constraints = "none",
     .source = "Qi et al., arXiv 2401.10241 (ZB-V), as its authors' scheduler makes it",
     .stages_per_rank = 2,
     .takes = kDurations | kWeightMemory,
     .make = zb_v_greedy},
    {.name = "v-half",
     .summary = "two stages on a rank: about half of 1f1b's bubble and half of its activations",
     .placement = kV,
     .constraints = "none",
     .source = "Qi et al., arXiv 2405.15362 (V-Half), as its authors' scheduler makes it",
     .stages_per_rank = 2,
     .takes = kNothing,
     .make = v_half},
    {.name = "v-min",
     .summary =
         "two stages on a rank: a third of 1f1b's activations; two thirds of its bubble where F = I = W, and more "
         "than 1f1b's where they differ much",
     .placement = kV,
     .constraints = "none",
     .source = "Qi et al., arXiv 2405.15362 (V-Min), as its authors' scheduler makes it",
     .stages_per_rank = 2,
     .takes = kNothing,
     .make = v_min},
    {.name = "hanayo",
     .summary = "W waves, 2W stages on a rank, made for given durations: for M up to P a bubble about 2W times smaller "
                "than 1f1b's; at most P micro-batches are under way",
     .placement = "down the ranks and up again, W times",
     .constraints = "an even number of stages per rank; a memory limit of at least 1",
     .source = "Liu et al., arXiv 2308.15762; the order is greedy and near the paper's bubble, not equal to it",
     .stages_per_rank = 2,
     .takes = kStagesPerRank | kDurations | kMemoryLimit,
     .make = hanayo},
};

// Positions are int, and nobody means more than this.
constexpr std::int64_t kMostForwards = std::int64_t{1} << 27;

void require_positive(const ScheduleRequest& request, int number, const char* what) {
  if (number < 1) refuse(request, std::to_string(number) + " " + what + "; at least 1 is needed");
}

// Fields that the kind has no use for must be as they were.
void require_known_fields(const ScheduleRequest& request, const ScheduleKind& kind) {
  const auto require = [&](bool given, Takes field, const char* what) {
    if (given && !(kind.takes & field)) refuse(request, std::string("takes no ") + what);
  };
  if (request.stages_per_rank != 0 && request.stages_per_rank != kind.stages_per_rank &&
      !(kind.takes & kStagesPerRank)) {
    refuse(request, std::to_string(request.stages_per_rank) + " stages per rank; it has " +
                        std::to_string(kind.stages_per_rank));
  }
  require(request.group_size != 0, kGroupSize, "group size");
  require(request.slices != 0, kSlices, "slices");
  require(request.durations.has_value(), kDurations, "durations: its order does not depend on them");
  require(request.memory_limit != 0, kMemoryLimit, "memory limit");
  require(request.weight_memory.has_value(), kWeightMemory, "share of memory for W: it has no use for one");
}

}  // namespace

std::span<const ScheduleKind> schedule_kinds() { return kKinds; }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

const ScheduleKind& schedule_kind(std::string_view name) {
  for (const ScheduleKind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  throw InputError("there is no schedule " + quoted(name) + "; known are " + join(schedule_names()));
}

Schedule make_schedule(const ScheduleRequest& request) {
  const ScheduleKind& kind = schedule_kind(request.name);
  require_positive(request, request.ranks, "ranks");
  require_positive(request, request.microbatches, "micro-batches");
  require_known_fields(request, kind);
  ScheduleRequest complete = request;
  if (complete.stages_per_rank == 0) complete.stages_per_rank = kind.stages_per_rank;
  require_positive(complete, complete.stages_per_rank, "stages per rank");
  const std::int64_t stages = std::int64_t{complete.ranks} * complete.stages_per_rank;
  if (stages > kMostForwards || stages * complete.microbatches > kMostForwards) {
    refuse(complete, std::to_string(stages) + " stages x " + std::to_string(complete.microbatches) +
                         " micro-batches; at most " + std::to_string(kMostForwards) + " are accepted");
  }
  return kind.make(complete);
}

Schedule make_schedule(const std::string& name, int ranks, int microbatches) {
  return make_schedule({.name = name, .ranks = ranks, .microbatches = microbatches});
}

}  // namespace plumbline

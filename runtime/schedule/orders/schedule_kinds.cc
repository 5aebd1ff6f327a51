#include "runtime/schedule/orders/schedule_kinds.h"

#include <algorithm>
#include <cstdint>

#include "runtime/error.h"
#include "runtime/schedule/orders/looped.h"
#include "runtime/schedule/orders/one_stage.h"
#include "runtime/schedule/orders/order.h"
#include "runtime/schedule/orders/replicated.h"
#include "runtime/schedule/orders/timed/zero_bubble_auto.h"
#include "runtime/schedule/orders/v/v_fixed.h"
#include "runtime/schedule/orders/v/v_greedy.h"
#include "runtime/schedule/orders/v/v_pattern.h"
#include "runtime/schedule/orders/v/waves.h"
#include "runtime/text/join.h"

namespace plumbline::schedule {
namespace {

constexpr std::string_view kOneStage = "stage s on rank s";
constexpr std::string_view kLooped = "stage s on rank s mod P";
constexpr std::string_view kV = "stages r and 2P-1-r on rank r: down the ranks and up again";
constexpr std::string_view kTwoReplicas = "stage s on rank s and, of the second replica, on rank P-1-s";
constexpr std::string_view kEqualRounds = "M a multiple of max(1, M / P), rounded down";

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
    {.name = "eager-1f1b",
     .summary = "1f1b with min(M, 2(P-1-r)) forwards first: the same bubble, transfers hidden, up to 2(P-r)-1 "
                "activations",
     .placement = kOneStage,
     .constraints = "none",
     .source = "Zhuang et al., arXiv 2211.05322",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = eager_one_f_one_b},
    {.name = "interleaved-1f1b",
     .summary = "1f1b over V stages on a rank: 1/V of its bubble for V times the transfers; rank 0 holds P + (P-1)/V "
                "activations",
     .placement = kLooped,
     .constraints =
         "M a multiple of max(1, M / P), rounded down; with a group size G: P <= G <= M, and M mod G is 0 or "
         "at least P",
     .source =
         "Narayanan et al., arXiv 2104.04473; the groups are PyTorch's ScheduleInterleaved1F1B, with a group size "
         "Megatron-LM's",
     .stages_per_rank = 2,
     .takes = kStagesPerRank | kGroupSize,
     .make = interleaved_one_f_one_b},
    {.name = "looped-bfs",
     .summary =
         "all forwards, stage by stage, then all backwards: interleaved-1f1b's bubble, M activations; each stage "
         "does its B by DESCENDING micro-batch",
     .placement = kLooped,
     .constraints = "none",
     .source = "Lamy-Poirier, arXiv 2211.05953; PyTorch's ScheduleLoopedBFS",
     .stages_per_rank = 2,
     .takes = kStagesPerRank,
     .make = looped_bfs},
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
    {.name = "interleaved-zero-bubble",
     .summary = "zb-h1 over V stages on a rank: 1/V of its bubble, P activations on every rank",
     .placement = kLooped,
     .constraints = kEqualRounds,
     .source = "Qi et al., arXiv 2401.10241; PyTorch's ScheduleInterleavedZeroBubble",
     .stages_per_rank = 2,
     .takes = kStagesPerRank,
     .make = interleaved_zero_bubble},
    {.name = "zb-v",
     .summary = "two stages on a rank in a V: where F = I = W and M >= 2P-1 no rank waits once it has begun, at most P "
                "activations; a fixed order, zb-v-greedy is the paper's",
     .placement = kV,
     .constraints = "2 stages per rank",
     .source = "Qi et al., arXiv 2401.10241, section 6; the order is PyTorch's ScheduleZBVZeroBubble",
     .stages_per_rank = 2,
     .takes = kNothing,
     .make = zb_v},
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
    {.name = "dualpipe-v",
     .summary = "two stages on a rank in a V, forward and backward of different micro-batches in one group: P + 1/2 "
                "activations",
     .placement = kV,
     .constraints = "2 stages per rank, M >= 2P",
     .source =
         "DeepSeek's DualPipe project, which credits Sea AI Lab's cut-in-half; PyTorch's ScheduleDualPipeV. Others "
         "give this name to an order without weight halves",
     .stages_per_rank = 2,
     .takes = kNothing,
     .make = dual_pipe_v},
    {.name = "dualpipe",
     .summary =
         "two replicas of the model in opposite directions, forward and backward in one group: P + 1 activations, "
         "twice the parameters; micro-batches from M/2 on go through the second replica",
     .placement = kTwoReplicas,
     .constraints = "P and M even, M >= 2P",
     .source = "DeepSeek-V3, arXiv 2412.19437; the order is that of DeepSeek's DualPipe project",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = dual_pipe},
    {.name = "chimera",
     .summary =
         "two replicas of the model in opposite directions, each 1f1b: a bubble of (P-2)/2 (F + B) where F = B, "
         "P/2 + 1 to P activations, twice the parameters; micro-batches from M/2 on go through the second replica",
     .placement = kTwoReplicas,
     .constraints = "P and M even",
     .source = "Li and Hoefler, arXiv 2107.06925; for M > P its direct concatenation of units of P micro-batches",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = chimera},
    {.name = "hanayo",
     .summary = "W waves, 2W stages on a rank, made for given durations: for M up to P a bubble about 2W times smaller "
                "than 1f1b's; at most P micro-batches are under way",
     .placement = "down the ranks and up again, W times",
     .constraints = "an even number of stages per rank; a memory limit of at least 1",
     .source = "Liu et al., arXiv 2308.15762; the order is greedy and near the paper's bubble, not equal to it",
     .stages_per_rank = 2,
     .takes = kStagesPerRank | kDurations | kMemoryLimit,
     .make = hanayo},
    {.name = "seq1f1b",
     .summary = "1f1b on K slices of each sequence: 1/K of its bubble, (P-r-1+K)/K activations; micro-batch n*K + j is "
                "slice j of sequence n and is run as a micro-batch of its own, B by DESCENDING slice within a sequence",
     .placement = kOneStage,
     .constraints = "M, which counts slices, a multiple of K",
     .source = "Sun et al., arXiv 2406.03488, with slices of any length",
     .stages_per_rank = 1,
     .takes = kSlices,
     .make = seq_one_f_one_b},
    {.name = "forward-only",
     .summary = "the forwards by ascending micro-batch and no backwards: evaluation",
     .placement = kOneStage,
     .constraints = "none",
     .source = "PyTorch's _ScheduleForwardOnly",
     .stages_per_rank = 1,
     .takes = kNothing,
     .make = forward_only},
};

// The names are ASCII.
bool is_same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

void require_positive(const ScheduleRequest& request, int number, const char* what) {
  if (number < 1) refuse(request, std::to_string(number) + " " + what + "; at least 1 is needed");
}

// A field that the kind does not use must keep its default.
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

const ScheduleKind* find_schedule_kind(std::string_view name) {
  for (const ScheduleKind& kind : kKinds) {
    if (is_same_name(kind.name, name)) return &kind;
  }
  return nullptr;
}

const ScheduleKind& schedule_kind(std::string_view name) {
  if (const ScheduleKind* kind = find_schedule_kind(name)) return *kind;
  throw InputError("there is no schedule " + quoted_text(name) + "; expected one of " + join(schedule_names()));
}

Schedule make_schedule(const ScheduleRequest& request) {
  const ScheduleKind& kind = schedule_kind(request.name);
  ScheduleRequest complete = request;
  complete.name = kind.name;
  require_positive(complete, complete.ranks, "ranks");
  require_positive(complete, complete.microbatches, "micro-batches");
  require_known_fields(complete, kind);
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

}  // namespace plumbline::schedule

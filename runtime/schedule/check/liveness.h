// Computes which activations a rank holds at the same time, and the fewest slots that can hold them.
//
// An activation lives from its F to the last action that needs it, the B or the W; with an OFFLOAD it lives twice, from
// the F to the OFFLOAD and from the RELOAD to the end. Two lifetimes share a slot only if they do not overlap, and
// there are as many slots as activations alive at once. The behaviour is that of PyTorch 2.15's
// analyze_pipeline_activation_liveness with two differences: a group of actions is one position in PyTorch and several
// here; and of a stage with replicas on other ranks only the micro-batches that go through this rank count.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// Positions in the rank's list, both included: for an action in a group, the first and last position of the group,
/// since its members run at once.
struct Lifetime {
  int begin = 0;
  int end = 0;
  bool operator==(const Lifetime&) const = default;
};

struct SlotAssignment {
  std::vector<int> slot_of;  ///< slots from 0, indexed as the given lifetimes
  int slots = 0;             ///< the most lifetimes that overlap at a position
};

/// Lifetimes are processed by begin, then end, then the given order, and get the lowest free slot. A slot becomes free
/// after the end of its lifetime. O(n log n).
SlotAssignment assign_slots(const std::vector<Lifetime>& lifetimes);

enum class ActivationGranularity {
  Microbatch,       ///< one slot for a micro-batch, from its first F on the rank to its last B or W
  StageMicrobatch,  ///< one for each stage and micro-batch
};

/// "microbatch" or "stage_microbatch". Throws InputError for any other text.
ActivationGranularity parse_granularity(std::string_view text);

struct Liveness {
  int rank = 0;
  std::vector<int> stages = {};  ///< as requested
  int microbatches = 0;
  int slots = 0;
  /// Both are indexed by place in `stages`, then by micro-batch. The slot is -1, and the lifetime meaningless, for a
  /// micro-batch that goes through another rank. With granularity Microbatch the stages share slot and lifetime.
  std::vector<std::vector<int>> slot_of = {};
  std::vector<std::vector<Lifetime>> lifetime_of = {};
};

/// The liveness of `stages` on `rank` of a compute or lowered schedule with backward. Throws InputError for a misshapen
/// schedule, a rank or stage that does not exist, and `stages` that are empty or repeat a stage. Also if one of these
/// stages, for some micro-batch of the rank, has no F, no B or W, two of F, of I or of B and W, a W without I, or a B
/// or W before the F; and if one of their actions has a micro-batch that does not exist or is on another rank. Also for
/// an OFFLOAD, after which the activation would need another slot.
Liveness activation_liveness(const Schedule& schedule, int rank, const std::vector<int>& stages,
                             ActivationGranularity granularity);

/// Indexed by rank: the most activations (of a stage and micro-batch) that the rank holds at once, if it waits for each
/// OFFLOAD at once. Throws as activation_liveness() does, except for an OFFLOAD; the order of OFFLOAD and RELOAD must
/// be valid (check.h).
std::vector<int> peak_live(const Schedule& schedule);

}  // namespace plumbline::schedule

// Which activations a rank holds at the same time, and in how few places they can lie.
//
// An activation lives from its F to the action that needs it last, the B or the W. Lifetimes are coloured exactly: two
// get the same slot only if they do not overlap, and there are as many slots as there are activations alive at once.
// Behaviour of PyTorch 2.15's analyze_pipeline_activation_liveness, but for positions: a group of actions is one of
// PyTorch's positions and several of ours; and of a stage with replicas on other ranks only the micro-batches that go
// through this one count.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// Positions in the rank's list, both included: of an action in a group those of the whole group, since all of its
/// members run at once.
struct Lifetime {
  int begin = 0;
  int end = 0;
  bool operator==(const Lifetime&) const = default;
};

struct SlotAssignment {
  std::vector<int> slot_of;  ///< by lifetime, in the order given
  int slots = 0;             ///< the most lifetimes that overlap at a position
};

/// Lifetimes are taken by begin, then end, then the order given, and get the lowest slot that is free. A slot is free
/// again behind its lifetime's end. O(n log n).
SlotAssignment assign_slots(const std::vector<Lifetime>& lifetimes);

enum class ActivationGranularity {
  Microbatch,       ///< one slot for a micro-batch, from its first F on the rank to its last B or W
  StageMicrobatch,  ///< one for each stage and micro-batch
};

/// "microbatch" or "stage_microbatch". Throws InputError for any other text.
ActivationGranularity parse_granularity(std::string_view text);

struct Liveness {
  int rank = 0;
  std::vector<int> stages = {};  ///< as asked for
  int microbatches = 0;
  int slots = 0;
  /// By place in `stages` and micro-batch: the slot, -1 where the micro-batch goes through another rank; and the
  /// lifetime, one and the same for all stages with Microbatch.
  std::vector<std::vector<int>> slot_of = {};
  std::vector<std::vector<Lifetime>> lifetime_of = {};
};

/// Of the stages asked for, on one rank of a compute or lowered schedule with backward. Throws InputError when `stages`
/// is empty or names one twice, the rank does not exist, or one of these stages, for some micro-batch of the rank, has
/// no F, no B or W, two of F, of I or of B and W, a W without I, or a B or W before the F; and for an action of theirs
/// with a micro-batch that does not exist.
Liveness activation_liveness(const Schedule& schedule, int rank, const std::vector<int>& stages,
                             ActivationGranularity granularity);

/// By rank: the most activations (of a stage and micro-batch) it holds at once. Throws like activation_liveness.
std::vector<int> peak_live(const Schedule& schedule);

}  // namespace plumbline::schedule

// Clean-up of a joint graph before it is partitioned: dead nodes go, equal ones are merged, tags of checkpoint regions
// are settled at their borders. After `eliminate_dead_code` of torch.fx, and `fx_graph_cse` and
// `cleanup_recompute_tags` of PyTorch. All linear; a graph that is moved in is not copied.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

struct Cleaned {
  JointGraph graph;
  /// By node of the graph given: its index here; that of the node it was merged into; kNoNode where it is gone.
  std::vector<NodeIndex> moved_to;
};

/// Removes what nobody uses. Inputs stay, and so do calls that are impure, write or draw random numbers.
Cleaned remove_dead_nodes(JointGraph graph);

/// What becomes of the user's words (MUST_SAVE, and those that ask to recompute) on calls that are merged into others.
enum class MergedTags : uint8_t {
  Lost,  ///< as PyTorch: the earlier call keeps its own
  Kept   ///< an earlier call without such a word takes the later's; where the two contradict, they are not merged
};

/// Merges equal pure calls, the later into the earlier. Equal: the same operator and overload, the same arguments after
/// merging, numbers of one type and floats of one bit pattern, and no call that writes in between.
///
/// Never merged: inputs and constants; impure and random calls; `empty`; what shares memory with an output (the caller
/// gets as many tensors as eager mode gives); buffers that a functionalised call writes; sizes that depend on data.
/// Nor nodes that Policy::kept_apart tells apart.
Cleaned merge_equal_nodes(JointGraph graph, const Policy& policy, MergedTags tags = MergedTags::Lost);

/// A node to be recomputed becomes MUST_SAVE where a later checkpoint region reads it (so that a region can start from
/// it), and where it carries a backward hook and no recomputed node reads it. `default_partitioner`: what a region
/// reads from outside of any is saved as well.
void settle_recompute_tags(JointGraph& graph, bool default_partitioner);

/// The part of `graph` for which `keep` is set, in order. What is kept must not read what is not; outputs must be kept.
Cleaned keep_nodes(JointGraph graph, const std::vector<char>& keep);

}  // namespace plumbline::partition

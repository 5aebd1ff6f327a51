// Clean-up of a joint graph before it is partitioned: removes dead nodes, merges equal nodes, and changes recompute
// tags at the borders of checkpoint regions. After `eliminate_dead_code` of torch.fx, and `fx_graph_cse` and
// `cleanup_recompute_tags` of PyTorch. Every function takes linear time; a graph that is moved in is not copied.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

struct Cleaned {
  JointGraph graph;
  /// Indexed by the NodeIndex in the original graph: the node's index in `graph`, or that of the node into which it was
  /// merged; kNoNode if it was removed.
  std::vector<NodeIndex> moved_to;
};

/// Removes nodes that no output needs. Inputs stay, and so do calls that are impure, write or draw random numbers, with
/// the nodes that these need.
Cleaned remove_dead_nodes(JointGraph graph);

/// The fate of the user's tags (MUST_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE) on a call that is merged into an earlier
/// one.
enum class MergedTags : uint8_t {
  Lost,  ///< as in PyTorch: the earlier call keeps its tag, or stays without one
  Kept   ///< an untagged earlier call takes the later call's tag; calls with contradicting tags are not merged
};

/// Merges each pure call into the first call that equals it. Calls are equal if they have the same operator, overload
/// and gradient mode, the same arguments after merging (numbers of the same type, floats with the same bits), and no
/// call that writes lies between them.
///
/// Never merged: inputs and constants; impure and random calls; `empty`; results that share memory with an output (the
/// caller receives as many distinct tensors as in eager mode); buffers that a functionalised call writes; results whose
/// shape or value depends on data; nodes that Policy::kept_apart distinguishes.
Cleaned merge_equal_nodes(JointGraph graph, const Policy& policy, MergedTags tags = MergedTags::Lost);

/// Retags as MUST_SAVE each node tagged to be recomputed that a recomputed node of a later checkpoint region reads
/// (that region starts from it), or that has a backward hook and no recomputed reader. With `default_partitioner`, also
/// tags nodes outside every region that a recomputed node reads.
void settle_recompute_tags(JointGraph& graph, bool default_partitioner);

/// Removes the nodes whose flag in `keep` (indexed by NodeIndex) is 0. Aborts if a kept node or an output needs a
/// removed node.
Cleaned keep_nodes(JointGraph graph, const std::vector<char>& keep);

}  // namespace plumbline::partition

// Clean-up of a joint graph before it is partitioned: dead nodes go, equal ones are merged, tags of checkpoint regions
// are settled at their borders. After `fx_graph_cse` and `cleanup_recompute_tags` of functorch.
#pragma once

#include <vector>

#include "runtime/partition/joint_graph.h"
#include "runtime/partition/policy.h"

namespace plumbline {

struct Cleaned {
  JointGraph graph;
  /// By node of the graph given: its index here; that of the node it was merged into; kNoNode where it was dead.
  std::vector<NodeIndex> moved_to;
};

/// Removes calls whose results nobody uses (inputs stay, impure calls stay).
Cleaned remove_dead_nodes(const JointGraph& graph);
/// Merges equal pure calls, the later into the earlier.
Cleaned merge_equal_nodes(const JointGraph& graph, const Policy& policy);
/// Where two checkpoint regions meet, and at outputs with a backward hook, recomputed nodes become MUST_SAVE.
/// `default_partitioner`: inputs of a region are saved as well.
void settle_recompute_tags(JointGraph& graph, bool default_partitioner);

/// The part of `graph` for which `keep` is set, in order.
Cleaned keep_nodes(const JointGraph& graph, const std::vector<char>& keep);

}  // namespace plumbline

#include <algorithm>

#include "runtime/partition/cut/forced_saves.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/joint/clean.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/reorder.h"

namespace plumbline::partition {
namespace {

/// Removes waits for a collective (an effect otherwise) whose results are unused, and the calls that only they need.
/// `must_run`: by node, for this half.
void remove_dead_collectives(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& must_run,
                             Subgraph& part) {
  std::vector<char> needed(graph.nodes.size(), 0);
  for (const NodeIndex output : part.outputs)
    if (output != kNoNode) needed[output] = 1;
  std::vector<NodeIndex> kept;
  for (auto op = part.ops.rbegin(); op != part.ops.rend(); ++op) {
    if (!needed[*op] && (is_collective(graph.nodes[*op]) || !must_run[*op])) continue;
    kept.push_back(*op);
    for (const NodeIndex input : edges.inputs(*op)) needed[input] = 1;
  }
  std::ranges::reverse(kept);
  part.ops = std::move(kept);
}

}  // namespace

bool rules::writes_beyond_inputs(const JointGraph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const JointNode& node) {
    if (node.op == "aten::copy_" || node.op == "aten::set_")
      return node.args.empty() || node.args[0].kind != JointArgument::Kind::Node ||
             !graph.nodes[node.args[0].node].is_input();
    return node.writes;
  });
}

Partition default_partition(JointGraph graph, const Policy& policy, const PartitionOptions& options) {
  const bool tagged = has_recompute_tags(graph);
  if (tagged && policy.default_is_min_cut(graph)) {
    PartitionOptions min_cut = options;
    min_cut.mode = PartitionMode::MinCut;
    return partition(std::move(graph), policy, min_cut);
  }
  if (tagged) settle_recompute_tags(graph, true);
  force_saves(graph);

  Partition partition;
  partition.graph = std::move(graph);
  const JointEdges edges = edges_of(partition.graph);
  SavedValues saves = policy.default_saves(partition.graph, edges, policy, tagged);
  divide(partition, edges, std::move(saves.tensors), std::move(saves.symbols), policy);
  const MustRun must = calls_that_must_run(partition.graph, edges);
  remove_dead_collectives(partition.graph, edges, must.in_forward, partition.forward);
  remove_dead_collectives(partition.graph, edges, must.in_backward, partition.backward);
  order_calls(partition, edges, policy, tagged ? Reordering::AsPyTorch : Reordering::None);
  return partition;
}

}  // namespace plumbline::partition

#include "runtime/partition/cut/forced_saves.h"

#include "runtime/error.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {
namespace {

/// Tags every item of the result of `node` that is not itself a tuple. If `or_itself`, tags a call without getitems
/// itself.
void save_parts(JointGraph& graph, const JointEdges& edges, NodeIndex node, bool or_itself) {
  bool apart = false;
  for (const NodeIndex user : edges.users(node)) {
    if (graph.nodes[user].kind != JointKind::GetItem) continue;
    apart = true;
    save_parts(graph, edges, user, true);
  }
  if (!apart && or_itself && graph.nodes[node].out.kind != JointResult::Kind::Tuple)
    graph.nodes[node].recompute = CheckpointPolicy::MustSave;
}

/// Copies into inputs are at the end of a graph. If both halves write the same input, the forward's new value must not
/// be computed twice.
void save_sources_of_double_writes(JointGraph& graph) {
  std::vector<char> written_by_backward(graph.nodes.size(), 0);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend() && node->op == "aten::copy_"; ++node) {
    if (node->args.size() < 2 || node->args[0].kind != JointArgument::Kind::Node) continue;
    const NodeIndex target = node->args[0].node;
    if (node->mark == JointMark::MustBeInBackward) written_by_backward[target] = 1;
    if (node->mark == JointMark::MustBeInForward && written_by_backward[target] &&
        node->args[1].kind == JointArgument::Kind::Node)
      graph.nodes[node->args[1].node].recompute = CheckpointPolicy::MustSave;
  }
}

}  // namespace

void force_saves(JointGraph& graph) {
  const auto wraps_effects = [](const JointNode& node) { return node.op == "higher_order::with_effects"; };
  bool any = false;
  for (const JointNode& node : graph.nodes) any = any || is_collective(node) || wraps_effects(node);
  if (any) {
    const JointEdges edges = edges_of(graph);
    for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i) {
      const JointNode& node = graph.nodes[i];
      if (is_collective(node) && !must_recompute(node)) save_parts(graph, edges, i, true);
      if (!wraps_effects(node) || node.mark == JointMark::IsBackward) continue;
      if (node.recompute == CheckpointPolicy::MustRecompute)
        throw InputError("partition: '" + node.name +
                         "' has effects and is tagged MUST_RECOMPUTE; the backward cannot repeat them");
      save_parts(graph, edges, i, false);
    }
  }
  save_sources_of_double_writes(graph);
}

}  // namespace plumbline::partition

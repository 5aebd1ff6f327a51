#include "runtime/partition/parity/policies/older_rules.h"

#include "runtime/partition/default_saves.h"

namespace plumbline::partition {

SavedValues older_rules::save_by_data_flow(const JointGraph& graph, const JointEdges& edges, const Policy& policy,
                                           bool /*tagged*/) {
  const std::vector<char> forward = forward_by_data_flow(graph, edges, policy);
  DefaultSaver saver(graph, edges, forward);
  for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i) {
    if (!forward[i]) continue;
    const JointNode& node = graph.nodes[i];
    if (node.out.kind == JointResult::Kind::Scalar) {
      saver.save_symbol(i);
    } else if (!node.is_input() && node.out.kind != JointResult::Kind::Tensor) {
      if (node.out.kind == JointResult::Kind::None) continue;
      if (edges.is_output[i] || !(edges.users(i).empty() || saver.is_taken_apart(i))) refuse_result(node);
      saver.save_parts(i);
    } else if (!saver.save_its_sizes_alone(i)) {
      saver.save(i);
    }
  }
  return std::move(saver.saved);
}

}  // namespace plumbline::partition

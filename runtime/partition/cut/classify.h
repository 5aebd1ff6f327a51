// Classifies the nodes of a joint graph: those that the forward needs, those that only the backward can compute, and
// the distance of each from the backward. After `classify_nodes` and `dist_from_bw` of PyTorch's partitioners.py.
#pragma once

#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// Every vector is indexed by NodeIndex.
struct NodeClasses {
  /// The node is an input of the forward, or the forward's outputs or its calls with effects need it.
  std::vector<char> required_forward;
  std::vector<char> required_backward;  ///< needs a tangent, must be in the backward, or is one of its outputs
  /// Only the backward can compute the node, so it cannot be saved (Policy::belongs_to_backward): by default it needs a
  /// tangent or must be in the backward. A node that is in required_backward only as an output may be saved.
  std::vector<char> tangents_closure;
  std::vector<int32_t> forward_order;  ///< position among the required_forward nodes; -1 for others
  /// Number of uses on the shortest path to a node outside required_forward; 0 for such a node, kFarFromBackward if no
  /// path exists. An output of the graph is at most Policy::output_distance away.
  std::vector<int32_t> distance_to_backward;
  std::vector<char> is_static;  ///< a primal that lives as long as the module (a parameter), free to save
};

/// Classifies all nodes; `ops` are classify_ops(graph, policy). `static_inputs`: positions among the primals; positions
/// out of range are ignored. Throws InputError naming a forward output that needs a tangent or is marked as part of the
/// backward.
NodeClasses classify_nodes(const JointGraph& graph, const JointEdges& edges, const Policy& policy, const OpClasses& ops,
                           const std::vector<int>& static_inputs);

}  // namespace plumbline::partition

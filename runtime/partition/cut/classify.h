// Which nodes of a joint graph the forward needs, which only the backward can compute, and how far nodes are from the
// backward. After `classify_nodes` and `dist_from_bw` of PyTorch's partitioners.py.
#pragma once

#include <vector>

#include "runtime/partition/joint/effects.h"
#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

struct NodeClasses {
  std::vector<char> required_forward;   ///< by node: the forward outputs need it, or it is an input of the forward
  std::vector<char> required_backward;  ///< depends on a tangent, must be in the backward, or is one of its outputs
  /// required_backward without nodes that are in it only as outputs: these may be saved, the others may not.
  std::vector<char> tangents_closure;
  std::vector<int32_t> forward_order;  ///< position among the required_forward nodes; -1 for others
  /// Steps to the nearest node outside the forward; 0 for nodes outside it, kFarFromBackward if none can be reached.
  std::vector<int32_t> distance_to_backward;
  std::vector<char> is_static;  ///< by node: a primal that lives as long as the module (a parameter), free to save
};

/// `static_inputs`: indices among the primals. Throws InputError naming a forward output that needs a tangent.
NodeClasses classify_nodes(const JointGraph& graph, const JointEdges& edges, const Policy& policy,
                           const std::vector<int>& static_inputs);

}  // namespace plumbline::partition

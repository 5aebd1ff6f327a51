// Which nodes of a joint graph the forward needs, which only the backward can compute, and how far from it they are.
// After `classify_nodes` and `dist_from_bw` of the functorch partitioners.
#pragma once

#include <vector>

#include "runtime/partition/joint_graph.h"
#include "runtime/partition/policy.h"

namespace plumbline {

struct NodeClasses {
  std::vector<char> required_forward;   ///< by node: the forward outputs need it (inputs of the forward included)
  std::vector<char> required_backward;  ///< depends on a tangent, must be in the backward, or is one of its outputs
  std::vector<char> tangents_closure;   ///< required_backward without what is only there for being an output
  std::vector<int32_t> forward_order;   ///< position among the required_forward nodes; -1 for others
  /// Steps to the nearest node outside of the forward; 0 for those, kFar where there is none.
  std::vector<int32_t> distance_to_backward;
  std::vector<char> is_static;  ///< by node: a primal that lives as long as the module (a parameter), free to save
  static constexpr int32_t kFar = 1'000'000'000;
};

/// `static_inputs`: indices among the primals.
NodeClasses classify_nodes(const JointGraph& graph, const JointEdges& edges, const Policy& policy,
                           const std::vector<int>& static_inputs);

}  // namespace plumbline

// Which nodes of a joint graph the forward needs, which only the backward can compute, and how far from it they are.
// After `classify_nodes` and `dist_from_bw` of the functorch partitioners.
#pragma once

#include <vector>

#include "runtime/partition/cut/policy.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct NodeClasses {
  std::vector<char> required_forward;   ///< by node: the forward outputs need it (inputs of the forward included)
  std::vector<char> required_backward;  ///< depends on a tangent, must be in the backward, or is one of its outputs
  /// required_backward without what is only there for being an output: such a value may be saved, the rest may not.
  std::vector<char> tangents_closure;
  std::vector<int32_t> forward_order;  ///< position among the required_forward nodes; -1 for others
  /// Steps to the nearest node outside of the forward; 0 for those, kFar where there is none.
  std::vector<int32_t> distance_to_backward;
  std::vector<char> is_static;  ///< by node: a primal that lives as long as the module (a parameter), free to save
  static constexpr int32_t kFar = 1'000'000'000;
};

/// `static_inputs`: indices among the primals. Throws InputError naming a forward output that needs a tangent.
NodeClasses classify_nodes(const JointGraph& graph, const JointEdges& edges, const Policy& policy,
                           const std::vector<int>& static_inputs);

/// An input of the forward: a primal, or a random seed of the forward.
inline bool is_forward_input(const JointNode& node) {
  return node.kind == JointKind::Primal || node.kind == JointKind::ForwardSeed;
}

/// By its mark, or as a mutation that was not traced in the backward: it may run in the forward only.
inline bool must_be_in_forward(const JointNode& node) {
  return node.mark == JointMark::MustBeInForward ||
         (node.writes && node.mark != JointMark::IsBackward && node.mark != JointMark::MustBeInBackward);
}

/// By its mark, or as a mutation that was traced there: it may run in the backward only.
inline bool must_be_in_backward(const JointNode& node) {
  return node.mark == JointMark::MustBeInBackward || (node.writes && node.mark == JointMark::IsBackward);
}

/// The user wants it run again: MUST_RECOMPUTE or PREFER_RECOMPUTE.
inline bool must_recompute(const JointNode& node) {
  return node.recompute == CheckpointPolicy::MustRecompute || node.recompute == CheckpointPolicy::PreferRecompute;
}

}  // namespace plumbline::partition

// The effects of a joint graph's calls beside their results, and the half in which a call with effects must run. To
// find out whether a call is random, use this file; Policy::random only lists operators that PyTorch's partitioners ban
// by name.
#pragma once

#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Whether the call draws from a random generator: it has ATen's tag nondeterministic_seeded, and is no attention call
/// whose dropout probability is 0 or omitted. After `is_rng_op` of PyTorch's partitioners.py.
bool draws_random_numbers(const JointNode& node);

/// Whether the call must run even if its result is unused: it writes an argument, or is impure. A random draw alone is
/// no effect here.
bool has_effects(const JointNode& node);

/// Whether the node's mark says that the model ran it in its backward.
bool traced_in_backward(const JointNode& node);

/// Returns, indexed by NodeIndex, whether the model ran the node in its backward: its mark says so, or it has no mark
/// and follows the forward's outputs and all calls marked as forward. A getitem counts as its call. `edges` are those
/// of `graph`.
std::vector<char> ran_in_backward(const JointGraph& graph, const JointEdges& edges);

/// The calls that run even if their results are unused, indexed by NodeIndex: those with effects, and random draws, so
/// that the generator advances as in the model. Each call runs in the half in which the model ran it, or in the
/// backward if it needs a value that only the backward has.
struct MustRun {
  std::vector<char> in_forward, in_backward;
};
/// `edges` are those of `graph`.
MustRun calls_that_must_run(const JointGraph& graph, const JointEdges& edges);

/// The properties that decide the half of a node: a small copy for walks over many nodes, since a JointNode is large.
struct HalfMarks {
  bool forward_call : 1 = false;  ///< a call marked as forward
  bool in_backward : 1 = false;   ///< traced_in_backward()
  bool unmarked : 1 = false;
  bool getitem : 1 = false;
  bool needs_backward : 1 = false;      ///< a tangent or a seed of the backward, or must be in the backward
  bool may_not_be_dropped : 1 = false;  ///< a call that writes, is impure or seeded
};
HalfMarks half_marks(const JointNode& node);
/// As above; `marks` are half_marks() of each node.
MustRun calls_that_must_run(const JointGraph& graph, const JointEdges& edges, const std::vector<HalfMarks>& marks);

/// Whether the node is a call of _c10d_functional.
bool is_collective(const JointNode& node);
/// Whether the node waits for a collective; such a call may be repeated.
bool is_collective_wait(const JointNode& node);

/// Whether the node is an input of the forward: a primal, or a random seed of the forward.
inline bool is_forward_input(const JointNode& node) {
  return node.kind == JointKind::Primal || node.kind == JointKind::ForwardSeed;
}

/// Whether the node may run in the forward only: its mark says so, or it writes and was not traced in the backward.
inline bool must_be_in_forward(const JointNode& node) {
  return node.mark == JointMark::MustBeInForward ||
         (node.writes && node.mark != JointMark::IsBackward && node.mark != JointMark::MustBeInBackward);
}

/// Whether the node may run in the backward only: its mark says so, or it writes and was traced in the backward.
inline bool must_be_in_backward(const JointNode& node) {
  return node.mark == JointMark::MustBeInBackward || (node.writes && node.mark == JointMark::IsBackward);
}

/// Whether the user tagged the node MUST_RECOMPUTE or PREFER_RECOMPUTE.
inline bool must_recompute(const JointNode& node) {
  return node.recompute == CheckpointPolicy::MustRecompute || node.recompute == CheckpointPolicy::PreferRecompute;
}

}  // namespace plumbline::partition

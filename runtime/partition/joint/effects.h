// What a call of a joint graph does beside computing its result, and in which half it must do so. Whoever asks whether
// a call is random asks here; Policy::random is only what PyTorch's partitioners ban by name.
#pragma once

#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// It draws from a generator: seeded (ATen's tag nondeterministic_seeded), unless it is one of the attention calls
/// whose probability of dropout is written as 0. After `is_rng_op` of PyTorch's partitioners.py.
bool draws_random_numbers(const JointNode& node);

/// It must run where nobody uses its result: it writes, or is impure. A random draw alone is no effect here.
bool has_effects(const JointNode& node);

/// Its mark says that the model ran it in its backward.
bool traced_in_backward(const JointNode& node);

/// By node: the model ran it in its backward. Its mark says so, or it has none and stands behind the forward's outputs
/// and all calls that are marked as the forward's; a getitem goes with its call.
std::vector<char> ran_in_backward(const JointGraph& graph);

/// The calls that run though nobody uses their result, by node: those with effects, and random draws, so that the
/// generator goes the way that it went in the model. Each in the half in which the model ran it, or in the backward
/// where it needs what only that has.
struct MustRun {
  std::vector<char> in_forward, in_backward;
};
MustRun calls_that_must_run(const JointGraph& graph, const JointEdges& edges);

bool is_collective(const JointNode& node);
/// Waiting for a collective; may be repeated.
bool is_collective_wait(const JointNode& node);

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

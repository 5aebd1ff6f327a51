// What a call of a joint graph does beside computing its result, and in which half it must do so. Whoever asks whether
// a call is random asks here; Policy::random is only what PyTorch's partitioners ban by name.
#pragma once

#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// It draws from a generator: seeded (ATen's tag nondeterministic_seeded), unless it is one of the attention calls
/// whose probability of dropout is written as 0. After `is_rng_op` of the functorch partitioners.
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

}  // namespace plumbline::partition

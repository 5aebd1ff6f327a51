// What a call of a joint graph does beside computing its result.
#pragma once

#include "runtime/partition/joint_graph.h"

namespace plumbline {

/// It draws from a generator: seeded (ATen's tag nondeterministic_seeded), unless it is one of the attention calls
/// whose probability of dropout is written as 0. After `is_rng_op` of the functorch partitioners.
bool draws_random_numbers(const JointNode& node);

/// It stays where nobody uses its result. A random draw is no such effect: nobody sees that it did not happen.
bool has_effects(const JointNode& node);

bool is_collective(const JointNode& node);
/// Waiting for a collective; may be repeated.
bool is_collective_wait(const JointNode& node);

}  // namespace plumbline

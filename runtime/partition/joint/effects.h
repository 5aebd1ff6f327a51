// What a call of a joint graph does beside computing its result.
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline {

/// It draws from a generator: seeded (ATen's tag nondeterministic_seeded), unless it is one of the attention calls
/// whose probability of dropout is written as 0. After `is_rng_op` of the functorch partitioners.
bool draws_random_numbers(const JointNode& node);

/// It must run where nobody uses its result: it writes, or is impure. A random draw alone is no effect here.
bool has_effects(const JointNode& node);

bool is_collective(const JointNode& node);
/// Waiting for a collective; may be repeated.
bool is_collective_wait(const JointNode& node);

}  // namespace plumbline

// Which calls of a joint graph draw from a generator.
#pragma once

#include "runtime/partition/joint_graph.h"

namespace plumbline {

/// The call is seeded (ATen's tag nondeterministic_seeded), unless it is one of the attention calls whose probability
/// of dropout is written as 0. After `is_rng_op` of the functorch partitioners.
bool draws_random_numbers(const JointNode& node);

}  // namespace plumbline

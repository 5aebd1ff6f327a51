// For tests and benchmarks: joint graphs of any size, shaped like real ones.
#pragma once

#include <random>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::testing {

struct TransformerSizes {
  int64_t blocks = 8, batch = 4, length = 256, width = 128, heads = 8;
};

/// Pre-norm transformer blocks in float32 with explicit, undecomposed softmax: the calls that AOTAutograd traces for
/// them (without no-ops such as detach). About 140 nodes per block.
partition::JointGraph transformer_joint_graph(const TransformerSizes& sizes);

/// sin(sin(...sin(x))); two calls per step in the backward.
partition::JointGraph chain_joint_graph(int steps);

/// A forward of `calls` additions, a fifth of them matrix products, each of two (mostly recent) earlier values, and a
/// backward through all of it: about three times as many nodes.
partition::JointGraph random_dag_joint_graph(int calls, std::mt19937& random);

}  // namespace plumbline::testing

// For tests and benchmarks: joint graphs of any size, with the shape of real ones.
#pragma once

#include <random>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::testing {

struct TransformerSizes {
  int64_t blocks = 8, batch = 4, length = 256, width = 128, heads = 8;
};

/// Pre-norm transformer blocks with the softmax written out, not decomposed, in float32: what AOTAutograd traces of
/// them, call by call (without those that change nothing, as detach). About 140 nodes a block.
partition::JointGraph transformer_joint_graph(const TransformerSizes& sizes);

/// sin(sin(...sin(x))), two calls a step in the backward.
partition::JointGraph chain_joint_graph(int steps);

/// A forward of `calls` additions, a fifth of them matrix products, each of two earlier values (near ones mostly), and
/// a backward through all of it: about three times as many nodes.
partition::JointGraph random_dag_joint_graph(int calls, std::mt19937& random);

}  // namespace plumbline::testing

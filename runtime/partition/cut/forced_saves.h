// Nodes that every partitioner must save: results of collectives and of calls with effects, and values written into an
// input that the backward also writes. After `force_save_collectives`, `force_save_effectful_ops` and
// `force_save_bw_mutation_src` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Tags those nodes MUST_SAVE; a collective tagged to be recomputed keeps its tag. Throws InputError naming a call with
/// effects that is tagged MUST_RECOMPUTE.
void force_saves(JointGraph& graph);

}  // namespace plumbline::partition

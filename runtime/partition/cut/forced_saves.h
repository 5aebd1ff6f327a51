// The nodes that every minimum cut must save: results of collectives, results of higher_order::with_effects calls of
// the forward, and values that the forward copies into an input that the backward also writes. After
// `force_save_collectives`, `force_save_effectful_ops` and `force_save_bw_mutation_src` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Tags those nodes MUST_SAVE; for a call with several results, its getitems. A collective tagged to be recomputed
/// keeps its tag. Throws InputError naming a with_effects call that is tagged MUST_RECOMPUTE.
void force_saves(JointGraph& graph);

}  // namespace plumbline::partition

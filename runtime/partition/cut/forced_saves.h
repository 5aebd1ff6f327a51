// What must be saved whatever a partitioner finds cheap: results of collectives, of calls with effects, and of what is
// written into an input that the backward writes as well. After `force_save_collectives`, `force_save_effectful_ops`
// and `force_save_bw_mutation_src` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Tags those nodes MUST_SAVE; a collective whose tag asks to compute it again keeps its tag. Throws InputError naming
/// a call with effects that is tagged MUST_RECOMPUTE.
void force_saves(JointGraph& graph);

}  // namespace plumbline::partition

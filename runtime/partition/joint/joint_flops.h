// Floating-point operations of a joint graph's calls, as PyTorch's FlopCounterMode counts them: a multiplication with
// its addition is two; matrix products, convolutions and fused attention, forward and backward, count, nothing else
// does. By recorded shapes (of dynamic ones the hints). The formulas are those of runtime/flops/flop_formulas.h.
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// What FlopCounterMode of 2.15 counts of the node; at least 1, as PyTorch's estimator of runtimes makes it. (2.11 does
/// not count aten::_scaled_dot_product_flash_attention_for_cpu and its backward.)
/// Throws InputError naming node and operator where its arguments do not fit the formula.
double counted_flops(const JointGraph& graph, NodeIndex node);

/// Sets JointNode::flops of every node.
void count_flops(JointGraph& graph);

}  // namespace plumbline::partition

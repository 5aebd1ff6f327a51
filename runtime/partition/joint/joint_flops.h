// Floating-point operations of a joint graph's calls, as PyTorch's FlopCounterMode counts them: a multiply-add counts
// two; only matrix products, convolutions and fused attention count, forward and backward. Uses the recorded shapes
// (the hints of dynamic ones) and the formulas of runtime/flops/flop_formulas.h.
#pragma once

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Returns the operations that FlopCounterMode of PyTorch 2.15 counts for the node, but at least 1, as PyTorch's
/// runtime estimator does; 1 for an operator without a formula. (2.11 does not count
/// aten::_scaled_dot_product_flash_attention_for_cpu and its backward.) Throws InputError naming node and operator if
/// the arguments do not fit the formula.
double counted_flops(const JointGraph& graph, NodeIndex node);

/// Sets JointNode::flops of every node to counted_flops().
void count_flops(JointGraph& graph);

}  // namespace plumbline::partition

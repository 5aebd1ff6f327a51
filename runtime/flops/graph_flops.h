// Floating-point operations of a graph's nodes, estimated from the captured sizes. A multiply-add counts two
// (flop_formulas.h has the conventions).
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::flops {

/// Returns the operations of one node's forward. A matrix-like call counts by its formula. Views, embedding look-ups,
/// calls that read no tensor and split points count nothing. A cond counts its costlier branch. Any other call counts
/// one for each element of its results. Reads only captured sizes, so tensors may be on the meta device or missing.
double estimated_flops(const graph::Graph& graph, const graph::Node& node);

/// Returns the operations of the node's backward: the forward's operations once for each factor of a matrix product
/// that requires a gradient (at most twice), and once for any other call with a result that requires a gradient;
/// otherwise 0. A node captured without gradients has no backward.
double estimated_backward_flops(const graph::Graph& graph, const graph::Node& node);

/// Returns the sum of forward and backward for each node, indexed as graph.nodes.
std::vector<double> estimated_flops(const graph::Graph& graph);

}  // namespace plumbline::flops

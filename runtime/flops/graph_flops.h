// Floating-point operations of a graph's nodes, estimated from the captured sizes. A multiply-add counts two
// (flop_formulas.h has the conventions).
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::flops {

/// The forward of one node. Matrix-like calls by their formula; views, embedding look-ups and calls that read no tensor
/// count nothing; a cond counts as the costlier branch; any other call counts one for each element of its results.
/// Reads captured sizes only, so tensors may be on the meta device or missing.
double estimated_flops(const graph::Graph& graph, const graph::Node& node);

/// Its backward: as much again for each factor of a matrix product that requires a gradient (so twice the forward if
/// both do), and as much again for any other call whose result requires one; otherwise nothing.
double estimated_backward_flops(const graph::Graph& graph, const graph::Node& node);

/// Both together, by node.
std::vector<double> estimated_flops(const graph::Graph& graph);

}  // namespace plumbline::flops

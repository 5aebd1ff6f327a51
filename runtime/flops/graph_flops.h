// Floating-point operations of a graph's nodes, estimated from the captured sizes. A multiplication with its addition
// counts two (flop_formulas.h has the conventions).
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::flops {

/// The forward of one node. Calls of matrix kind by their formula; what makes views, looks up embeddings or reads no
/// tensor, nothing; of a cond, the costlier branch; anything else one for each element of its results. Looks at
/// captured sizes only, so tensors may be on the meta device or missing.
double estimated_flops(const graph::Graph& graph, const graph::Node& node);

/// Its backward: as much again for each factor of a matrix product that requires a gradient (so twice the forward where
/// both do), and as much again for any other call whose result requires one; nothing where none does.
double estimated_backward_flops(const graph::Graph& graph, const graph::Node& node);

/// Both together, by node.
std::vector<double> estimated_flops(const graph::Graph& graph);

}  // namespace plumbline::flops

// The values of a graph that get a gradient if a backward starts at given values.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Indexed by ValueId: nonzero if the value requires a gradient and one of `roots` depends on it, through calls that
/// record gradients and values that require one. A root that requires a gradient counts itself; kNoValue in `roots` is
/// ignored. An in-place call counts as a write to every value with the same storage number, since views read the
/// changed memory.
std::vector<char> gradient_reach(const Graph& graph, const std::vector<ValueId>& roots);

}  // namespace plumbline::graph

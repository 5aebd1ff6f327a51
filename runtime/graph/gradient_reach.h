// Which values of a graph get a gradient when backward starts at some of them.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// By value: whether it requires a gradient and one of `roots` depends on it through calls that record gradients and
/// values that require one. A root itself counts; kNoValue among them is left out. What an in-place call writes is read
/// through any view of that memory, so views count as written with it.
std::vector<char> gradient_reach(const Graph& graph, const std::vector<ValueId>& roots);

}  // namespace plumbline::graph

// Names the values of a graph, for the boundaries between stages.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// Returns a name for each value, indexed by ValueId, unique within the graph; empty for parameters, buffers and
/// constants. Inputs keep their names. The result of a module has the module's name ("blocks.3"), any other value those
/// of the innermost module and the operator ("blocks.3:add"). The second value of the same name has the suffix "#2",
/// and so on.
std::vector<std::string> boundary_names(const graph::Graph& graph);

}  // namespace plumbline::split

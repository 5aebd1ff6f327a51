// The names of values that cross a border.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// A name for each value, indexed by value; names are unique within the graph. Inputs keep their names. The value that
/// a module returned last has the module's name ("blocks.3"), a value made inside it has that of the module and the
/// operator ("blocks.3:add"), and "#2" marks the second of two. Attributes have none.
std::vector<std::string> boundary_names(const graph::Graph& graph);

}  // namespace plumbline::split

// What values are called when they cross a border.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// A name for each value, by value; those of the graph differ from one another. Inputs keep their names. What a module
/// returned last has the module's name ("blocks.3"), what was made inside it has that of the module and the operator
/// ("blocks.3:add"), and "#2" tells the second of two from the first. Attributes have none.
std::vector<std::string> boundary_names(const graph::Graph& graph);

}  // namespace plumbline::split

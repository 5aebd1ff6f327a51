// The picture of a graph, in the language of Graphviz: `dot -Tsvg` draws it.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// One box for each call (operator and what it returns), inputs as ellipses, attributes as notes, the outputs as one
/// ellipse; modules are frames around the calls that they made, and so are the branches of a cond.
std::string to_dot(const Graph& graph);

}  // namespace plumbline::graph

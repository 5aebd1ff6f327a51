// For tests: reads the text form of a graph (io/text.h), so that tests can write graphs as text.
#pragma once

#include <string_view>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Parses a text. Skips empty lines and lines that begin with #. The attributes of the result have no tensors: bind
/// them before a run. Throws InputError with the line, the column and the expected text; without a line and column if
/// the text ends too early.
Graph parse_graph(std::string_view text);

}  // namespace plumbline::graph

// Draws a pipe in the Graphviz DOT language; `dot -Tsvg` renders it.
#pragma once

#include <string>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Returns a digraph. Each stage is a frame with its numbers of calls, parameters and buffers, and at most 12 outermost
/// modules. One edge leads from a boundary's producer to each consumer, labelled with name and shape, with two
/// arrowheads if a gradient returns. Dashed lines connect a shared parameter with its stages. The model's inputs and
/// outputs are ellipses.
std::string to_dot(const Pipe& pipe);

}  // namespace plumbline::split

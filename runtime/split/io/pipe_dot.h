// The picture of a pipe in the Graphviz DOT language; `dot -Tsvg` renders it.
#pragma once

#include <string>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// One frame for each stage (its calls, parameters and outermost modules); an edge for each boundary and each stage
/// that uses it, with name and shape, pointing both ways if a gradient returns. Dashed lines connect a parameter with
/// the stages that share it.
std::string to_dot(const Pipe& pipe);

}  // namespace plumbline::split

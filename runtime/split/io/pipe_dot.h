// The picture of a pipe, in the language of Graphviz: `dot -Tsvg` draws it.
#pragma once

#include <string>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// One frame for each stage (its calls, parameters and outermost modules); an edge for each boundary and each stage
/// that uses it, with name and shape, pointing both ways where a gradient returns; a parameter that several stages hold
/// is joined to them by dashed lines.
std::string to_dot(const Pipe& pipe);

}  // namespace plumbline::split

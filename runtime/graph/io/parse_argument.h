// One argument of a call in the text form, read by the type that the operator's schema declares for it.
#pragma once

#include <functional>

#include "runtime/graph/graph.h"
#include "runtime/graph/io/cursor.h"

namespace plumbline::graph {

/// Reads a value such as %3, or None, and refuses one that is not known or is no `type`.
using ReadValue = std::function<ValueId(Cursor& line, const c10::Type& type)>;

/// Throws InputError naming line and column, and what was expected there.
Argument parse_argument(Cursor& line, const c10::Type& declared, const ReadValue& read_value);

}  // namespace plumbline::graph

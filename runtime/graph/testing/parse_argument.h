// Parses one argument of a call in the text form, according to the type that the operator's schema declares.
#pragma once

#include <functional>

#include "runtime/graph/graph.h"
#include "runtime/graph/testing/cursor.h"

namespace plumbline::graph {

/// Reads a value such as %3, or None (kNoValue). Must throw InputError for a value that is unknown or not of `type`.
using ReadValue = std::function<ValueId(Cursor& line, const c10::Type& type)>;

/// Reads one argument of the type `declared`. Throws InputError naming line, column and the expected text.
Argument parse_argument(Cursor& line, const c10::Type& declared, const ReadValue& read_value);

}  // namespace plumbline::graph

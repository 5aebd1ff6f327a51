// Quotes text for the Graphviz DOT language.
#pragma once

#include <string>

namespace plumbline {

/// Returns `text` as a quoted name or label. Any text is valid; newlines become line breaks of the label.
std::string dot_quoted(const std::string& text);

}  // namespace plumbline

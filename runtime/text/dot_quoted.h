// Quoted text in the Graphviz DOT language.
#pragma once

#include <string>

namespace plumbline {

/// `text` as a quoted name or label. Any text is valid; line breaks are kept.
std::string dot_quoted(const std::string& text);

}  // namespace plumbline

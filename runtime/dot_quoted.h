// Text in the language of Graphviz.
#pragma once

#include <string>

namespace plumbline {

/// `text` as a quoted name or label: any text is one, lines are kept.
std::string dot_quoted(const std::string& text);

}  // namespace plumbline

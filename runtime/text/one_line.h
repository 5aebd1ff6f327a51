// Makes text from a file or a child process safe to print.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// Returns `text` on one line, safe for a terminal: newlines, carriage returns and tabs become spaces, other ASCII
/// control characters the text \xNN; those of Unicode, also those that reverse the direction of text, \uNNNN.
std::string one_line(std::string_view text);

}  // namespace plumbline

// Makes text from a file or a child process safe to print.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// `text` on one line, safe for a terminal: control characters become spaces or \xNN.
std::string one_line(std::string_view text);

}  // namespace plumbline

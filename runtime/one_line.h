// Text from elsewhere (a file, a child process) made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace plumbline {

/// `text` in one line that is safe on a terminal: control characters become spaces or \xNN.
std::string one_line(std::string_view text);

}  // namespace plumbline

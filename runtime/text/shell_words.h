// The words of a command that a user gives in one argument.
#pragma once

#include <string>
#include <vector>

namespace plumbline {

/// Splits a line into words as a POSIX shell does, without expansion. Throws InputError, which begins with `option` and
/// ": ", for a quote that is not closed.
std::vector<std::string> shell_words(const std::string& line, const std::string& option);

}  // namespace plumbline

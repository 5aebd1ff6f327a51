// Where and with what a run was made, for its report.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumbline {

/// version, commit, LibTorch, compiler, hardware, date and the command line, with `more` in between.
std::vector<std::pair<std::string, std::string>> run_context(
    const std::string& command_line, const std::vector<std::pair<std::string, std::string>>& more);

/// "0.1.0"
std::string plumbline_version();

}  // namespace plumbline

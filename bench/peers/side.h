// The processes of the sides of a comparison with another library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/protocol/process/process.h"

namespace plumbline::bench {

/// A Python side ends with this code if it lacks its module.
inline constexpr int kLacksModule = 3;

/// Writes Python's scripts into `folder`, and returns the command that runs one of them ("split_backward.py").
std::vector<std::string> python_side(const std::string& python, const std::string& script,
                                     const std::filesystem::path& folder);

/// Runs a side to its end. `option`: the option that named the program, which begins an error ("--python: "); empty:
/// none. `needs` ends the error about a missing module ("needs a Python with torch"). `result`: a file that the side
/// writes. Throws InputError for a program that cannot start, lacks the module, or succeeds without the file; Error,
/// with the output, if it fails.
void run_side(const std::string& name, const conformance::ProcessOptions& process, const std::string& option,
              const std::string& needs, const std::filesystem::path& result);

/// The load of the last minute.
std::string load_average();

}  // namespace plumbline::bench

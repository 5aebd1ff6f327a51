// The command that repeats one run of a session, for the line `repeat:`.
#pragma once

#include <string>

#include "conformance/plan/plan.h"

namespace plumbline::conformance {

/// A line for a shell: the program as it was called, with the launcher that started its ranks, and every option on
/// which the run's result depends. Its report goes to a folder beside the session's, which it would replace otherwise.
std::string repeat_command(const RunOptions& options, const RunId& run);

}  // namespace plumbline::conformance

// `plumbline run --program`: one training step of a program from Python, split over ranks.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "conformance/program/options.h"

namespace plumbline::program {

/// Starts the ranks (threads of this process, or the launcher with the command `program argv...`), executes the step,
/// prints a summary to `out`, and saves and compares results as the options require. A process that a launcher started
/// acts as one of the ranks. Sets the number of LibTorch's threads to 1.
///
/// Returns the exit code: 0, or 1 if a result differs from the expected result; with a launcher, its exit code. Throws
/// InputError for invalid options, files and programs, Error as run_step_on_rank() does, and Error if the launcher
/// cannot start or is killed. A process that a launcher started does not throw: if rank 0 finds the input invalid, it
/// prints why and all ranks return 2; any other error aborts all ranks.
int run_program(const ProgramOptions& options, const std::string& program, const std::vector<std::string>& argv,
                std::ostream& out);

}  // namespace plumbline::program

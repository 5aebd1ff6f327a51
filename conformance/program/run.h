// `plumbline run --program`: one training step of a program from Python, split over ranks.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "conformance/program/options.h"

namespace plumbline::program {

/// Starts the ranks (threads of this process, or mpirun with the command `program argv...`), executes the step, prints
/// a summary to `out`, and saves and compares results as the options require. A process that mpirun started acts as one
/// of the ranks; an error other than InputError then aborts all ranks. Sets the number of LibTorch's threads to 1.
///
/// Returns the exit code: 0, or 1 if a result differs from the expected result; with mpirun, the exit code of mpirun;
/// in a process that mpirun started, 2 for an InputError, which rank 0 prints. Otherwise throws InputError for invalid
/// options, files and programs, and Error if mpirun cannot start or is killed.
int run_program(const ProgramOptions& options, const std::string& program, const std::vector<std::string>& argv,
                std::ostream& out);

}  // namespace plumbline::program

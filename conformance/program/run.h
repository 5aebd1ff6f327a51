// `plumbline run --program`: one training step of a program from Python, split over ranks.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "conformance/program/options.h"

namespace plumbline::program {

/// Starts the ranks (threads of this process, or `program argv...` under mpirun), executes the step, reports it to
/// `out`, and saves and compares results if the options say so. A process that mpirun started acts as one of the ranks.
/// Returns the exit code: 1 if a result differs from the expected one. Throws InputError.
int run_program(const ProgramOptions& options, const std::string& program, const std::vector<std::string>& argv,
                std::ostream& out);

}  // namespace plumbline::program

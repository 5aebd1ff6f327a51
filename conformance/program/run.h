// `plumbline run --program`: one training step of a program from Python, split over ranks.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "conformance/program/options.h"

namespace plumbline::program {

/// Starts the ranks (threads of this process, or `program argv...` again under mpirun), runs the step, tells `out`
/// about it, saves and compares what was asked for. Returns the exit code: 1 where a result differs from what was
/// expected. Throws InputError. Under mpirun already: this process is one of the ranks.
int run_program(const ProgramOptions& options, const std::string& program, const std::vector<std::string>& argv,
                std::ostream& out);

}  // namespace plumbline::program

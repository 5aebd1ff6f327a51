// `plumbline prove --program`: is the step of a program from Python, cut and pipelined, the program's own computation?
#pragma once

#include <iosfwd>

#include "conformance/program/options.h"
#include "conformance/proof/prove.h"

namespace plumbline::proof {

/// Cuts the program as `plumbline run --program` does, executes the engine on threads and the program as it is, micro-
/// batch by micro-batch, and compares the terms of all losses, outputs, gradients and buffers. Prints one line to
/// `out`. Returns the exit code: 0 proven, 1 refuted or stopped. Throws InputError for invalid options and programs,
/// and for a step that a proof does not take.
int prove_program(const program::ProgramOptions& options, Claim claim, std::ostream& out);

}  // namespace plumbline::proof

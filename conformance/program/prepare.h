// Reads a program and cuts it according to the options of the command line.
#pragma once

#include "conformance/program/loss.h"
#include "conformance/program/options.h"

namespace plumbline::program {

struct PreparedProgram {
  capture::ExportedProgram program;
  ProgramLoss loss;
  bool has_backward = false;  ///< some parameter requires a gradient and the loss depends on it
  split::Pipe pipe;
};

/// Reads the archive, runs it once on its sample inputs (or on ones, if they cannot be read) to infer shapes and
/// gradients, and cuts it. `default_stages`: the number of stages if neither split points, nor a number of stages, nor
/// markers determine it. Throws InputError.
PreparedProgram prepare_program(const std::filesystem::path& archive, const ProgramSplit& split,
                                const std::string& loss, int default_stages);

}  // namespace plumbline::program

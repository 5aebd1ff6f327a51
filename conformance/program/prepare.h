// Reading and cutting a program, as the command line asks for it.
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

/// Reads the archive, runs it once on its sample inputs (or, where it has none, on `example`) to see shapes and
/// gradients, and cuts it. `default_stages`: how many where neither split points, nor a number of stages, nor markers
/// say so. Throws InputError.
PreparedProgram prepare_program(const std::filesystem::path& archive, const ProgramSplit& split,
                                const std::string& loss, int default_stages);

}  // namespace plumbline::program

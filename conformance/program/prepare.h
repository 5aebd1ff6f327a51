// Reads a program and cuts it according to the options of the command line.
#pragma once

#include "conformance/program/loss.h"
#include "conformance/program/options.h"

namespace plumbline::program {

struct PreparedProgram {
  capture::ExportedProgram program;
  ProgramLoss loss;
  bool has_backward = false;  ///< whether the loss depends on a tensor that requires a gradient
  split::Pipe pipe;
};

/// Reads the archive, runs the program once on its sample inputs (or on ones, if they cannot be read) to infer shapes
/// and gradients, and cuts it. `loss` is the text for choose_loss(). `default_stages` is the number of stages if
/// neither split points, markers in the program, ProgramSplit::stages nor an "every" policy determine it. Throws
/// InputError for an archive that cannot be read or cut, and for options that are invalid or contradict each other.
PreparedProgram prepare_program(const std::filesystem::path& archive, const ProgramSplit& split,
                                const std::string& loss, int default_stages);

}  // namespace plumbline::program

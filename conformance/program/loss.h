// The loss of a program: given by the option --loss, or inferred from the program's outputs.
#pragma once

#include <string>

#include "reference/case.h"
#include "runtime/capture/pt2/program.h"
#include "runtime/engine/engine.h"

namespace plumbline::program {

struct ProgramLoss {
  reference::LossSpec spec;
  int output = 0;      ///< index of the program output from which the loss is computed
  std::string target;  ///< name of the tensor, in the inputs file or among the inputs, that is the target; empty: none
};

/// Returns the loss that `text` describes: "output:K", "sum", "mean", "mse:TARGET" or "cross-entropy:TARGET". If `text`
/// is empty, the loss is the output with the key "loss" if there is one, else the first output that is a floating-point
/// scalar, else the sum of output 0. Throws InputError for another text, for an output that does not exist or is not a
/// floating-point tensor, and for "output:K" if output K is not a scalar.
ProgramLoss choose_loss(const std::string& text, const capture::ExportedProgram& program);

/// The text from which choose_loss() makes this loss.
std::string to_string(const ProgramLoss& loss);

/// The function that computes the loss from the program's outputs and the target.
engine::LossFunction loss_function(const ProgramLoss& loss);

}  // namespace plumbline::program

// The loss of a program: given by `--loss`, or inferred from the program's outputs.
#pragma once

#include <string>

#include "reference/case.h"
#include "runtime/capture/pt2/program.h"
#include "runtime/engine/engine.h"

namespace plumbline::program {

struct ProgramLoss {
  reference::LossSpec spec;
  int output = 0;      ///< the index of the output from which the loss is computed
  std::string target;  ///< the tensor among the inputs that the output is compared with; empty: none
};

/// `text` is "output:K", "sum", "mean", "mse:TARGET" or "cross-entropy:TARGET". Empty: the output with the key "loss"
/// if there is one, else the first output that is a floating-point scalar, else the sum of output 0. Throws InputError
/// naming the accepted forms, or the number of outputs.
ProgramLoss choose_loss(const std::string& text, const capture::ExportedProgram& program);

/// In the form of the command line.
std::string to_string(const ProgramLoss& loss);

engine::LossFunction loss_function(const ProgramLoss& loss);

}  // namespace plumbline::program

// The loss of a program: what `--loss` says, or what the program's outputs suggest.
#pragma once

#include <string>

#include "reference/case.h"
#include "runtime/capture/pt2/program.h"
#include "runtime/engine/engine.h"

namespace plumbline::program {

struct ProgramLoss {
  reference::LossSpec spec;
  int output = 0;      ///< the model output that it is computed from
  std::string target;  ///< the tensor of the inputs that it is compared with; empty: none
};

/// "output:K", "sum", "mean", "mse:TARGET", "cross-entropy:TARGET"; empty: the output under the key "loss" if there is
/// one, else an output that is a floating-point scalar, else the sum of output 0. Throws InputError naming what is
/// accepted, or the outputs there are.
ProgramLoss choose_loss(const std::string& text, const capture::ExportedProgram& program);

/// As the command line says it.
std::string to_string(const ProgramLoss& loss);

engine::LossFunction loss_function(const ProgramLoss& loss);

}  // namespace plumbline::program

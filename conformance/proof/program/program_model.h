// A program from Python as the unsplit model of a proof, and the cut program as the engine's.
#pragma once

#include <string>

#include "conformance/backend/fault.h"
#include "conformance/program/rank.h"

namespace plumbline::proof {

/// Makes the whole program available to models::make_model() under `name`, and the step's batch to
/// models::make_batch(), whatever its number. Each model has parameters and buffers of its own. Output 0 is the one of
/// which the loss is computed; it has changed places with the program's output 0. `step` is copied.
void add_program(const std::string& name, const program::ProgramStep& step);

/// The case whose model is that program: one train step, or an evaluation if there is nothing to train.
reference::Case program_case(const std::string& name, const program::ProgramStep& step);

/// Makes a rank's engine execute the stages of `step` in place of those that it would capture from the model. Each call
/// gives stages with parameters and buffers of their own.
conformance::Fault with_program_stages(const program::ProgramStep& step);

/// Why no proof takes the step, in one line; empty if one does. The unsplit run adds a parameter's gradients up in the
/// order of stage 0's backwards.
std::string why_not_provable(const program::ProgramStep& step, const schedule::Schedule& schedule);

}  // namespace plumbline::proof

// A program from Python as the unsplit model of a proof, and the cut program as the engine's.
#pragma once

#include <string>

#include "conformance/backend/fault.h"
#include "conformance/program/rank.h"

namespace plumbline::proof {

/// Makes the whole program available to models::make_model() under `name`, and the step's batch to models::make_batch()
/// for every number of a batch. Each model has parameters and buffers of its own. The program's output 0 and the output
/// from which the loss is computed change places. `step` is copied.
void add_program(const std::string& name, const program::ProgramStep& step);

/// The case whose model is that program: one train step, or an evaluation if there is nothing to train.
reference::Case program_case(const std::string& name, const program::ProgramStep& step);

/// A fault by which a rank's engine executes the stages of `step` in place of those that it would capture from the
/// model. Each call gives stages with parameters and buffers of their own.
conformance::Fault with_program_stages(const program::ProgramStep& step);

/// Why no proof takes the step, in one line; empty if one does. All stages must run their backwards in one order of
/// micro-batches, since the unsplit run has one stage, and adds all gradients up in its order.
std::string why_not_provable(const program::ProgramStep& step, const schedule::Schedule& schedule);

}  // namespace plumbline::proof

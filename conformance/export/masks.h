// The random numbers of a case ("masks"), drawn as the oracles and the runtime draw them. A backend reads them from the
// export, so that it needs no generator.
#pragma once

#include "conformance/export/program_form.h"

namespace plumbline::conformance {

/// Adds the masks of one train step to `tensors`, as "step/STEP/mask/STAGE/MICROBATCH/NAME". `uses` has one entry for
/// each micro-batch, `step` is the index among all steps of the case, and `train_step` the index among its train steps.
/// For each micro-batch the stages run in order, on copies of parameters and buffers, each with the generator seeded by
/// (seed, train_step, stage, micro-batch).
void add_masks(const ProgramSet& set, const std::vector<ProgramUse>& uses, uint64_t seed, int step, int train_step,
               TensorMap& tensors);

}  // namespace plumbline::conformance

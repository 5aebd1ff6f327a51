// The masks of random layers, as every oracle and our runtime draw them.
#pragma once

#include "conformance/export/program_form.h"

namespace plumbline::conformance {

/// Adds the masks of a training step's micro-batches as "step/STEP/mask/STAGE/MICROBATCH/NAME". It runs the stages one
/// after the other with the generator seeded by (seed, train_step, stage, micro-batch).
void add_masks(const ProgramSet& set, const std::vector<ProgramUse>& uses, uint64_t seed, int step, int train_step,
               TensorMap& tensors);

}  // namespace plumbline::conformance

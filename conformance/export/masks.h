// The masks of random layers, as every oracle and our own runtime draw them.
#pragma once

#include "conformance/export/program_form.h"

namespace plumbline::conformance {

/// Adds the masks that the micro-batches of a training step draw, "step/STEP/mask/STAGE/MICROBATCH/NAME": those that
/// the generator gives, seeded by (seed, train_step, stage, micro-batch), to the stages run one after the other.
void add_masks(const ProgramSet& set, const std::vector<ProgramUse>& uses, uint64_t seed, int step, int train_step,
               TensorMap& tensors);

}  // namespace plumbline::conformance

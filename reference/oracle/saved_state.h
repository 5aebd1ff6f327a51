// The state that a training run saves and from which another resumes. The canonical names of its tensors do not depend
// on the split into stages.
#pragma once

#include <map>
#include <string>

#include "reference/case.h"
#include "reference/models/zoo.h"
#include "reference/oracle/optimizer.h"

namespace plumbline::reference {

struct SavedState {
  std::map<std::string, at::Tensor> parameters, buffers;
  OptimizerState optimizer;
};

/// The state after Case::steps_before, which the whole model executes, one micro-batch after another, in the case's
/// dtype and unseen by interposers; empty if there are none. A function of the case and the seed, so that every rank
/// and every oracle resumes from the same numbers.
SavedState saved_state(const Case& c, uint64_t seed);

/// Copies the saved parameters and buffers into `model`; an empty state changes nothing.
void load(const SavedState& state, models::Model& model);

/// The model with which the first step of a case begins; `state` is that of saved_state().
models::Model model_of(const Case& c, uint64_t seed, const SavedState& state);

/// The same training as one run: the steps of Case::steps_before, a ZeroGrad, then the steps of Case::steps.
Case uninterrupted(Case c);

/// The number of the first batch of a case for models::make_batch(): the number of batches in Case::steps_before.
int first_batch(const Case& c);

}  // namespace plumbline::reference

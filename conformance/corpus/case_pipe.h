// The model of a case, cut into stages.
#pragma once

#include <cstdint>

#include "reference/case.h"
#include "reference/models/zoo.h"
#include "runtime/split/pipe.h"

namespace plumbline::conformance {

/// Splits the model for training on the case's first batch. `model` is the case's, made with the same seed.
split::Pipe case_pipe(const reference::Case& c, const models::Model& model, int stages, uint64_t seed);

}  // namespace plumbline::conformance

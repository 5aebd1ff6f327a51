// The model of a case, cut into stages.
#pragma once

#include <cstdint>

#include "reference/case.h"
#include "reference/models/zoo.h"
#include "runtime/split/pipe.h"

namespace plumbline {

/// As it trains on the case's first batch. `model` is the case's, of the same seed.
Pipe case_pipe(const Case& c, const Model& model, int stages, uint64_t seed);

}  // namespace plumbline

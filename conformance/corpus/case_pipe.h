// The model of a case, cut into stages.
#pragma once

#include <cstdint>

#include "reference/case.h"
#include "reference/models/zoo.h"
#include "runtime/split/pipe.h"

namespace plumbline::conformance {

/// Captures `model` in training mode on the whole first batch of `c`, and splits it at stage_points(model, stages).
/// `model` is the model of `c`, constructed with the same seed. Throws InputError if the model cannot be cut into that
/// many stages, or cannot be captured.
split::Pipe case_pipe(const reference::Case& c, const models::Model& model, int stages, uint64_t seed);

}  // namespace plumbline::conformance

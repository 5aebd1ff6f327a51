// The expected terms of values between stages, which the unsplit model has no names for: those of the detached stages
// (reference/oracle/detached_run.h), which run without engine, schedule and transport.
#pragma once

#include <cstdint>

#include "conformance/proof/executions/observed_rank.h"
#include "reference/oracle/detached_run.h"

namespace plumbline::proof {

/// The terms of the values that cross stage boundaries and of their gradients, under the keys of the engine's results.
/// `recorder` must have recorded nothing.
ResultTerms run_detached_boundaries(const reference::Case& c, uint64_t seed, const reference::StageOrders& orders,
                                    Recorder& recorder);

}  // namespace plumbline::proof

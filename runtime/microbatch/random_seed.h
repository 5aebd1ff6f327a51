// The seed of the random numbers that one stage draws for one micro-batch.
//
// The seed depends only on (run seed, step, stage, micro-batch): every placement and every order of execution draws the
// same dropout masks, and the recompute of a stage repeats them.
#pragma once

#include <cstdint>

#include "runtime/mix64.h"

namespace plumbline::microbatch {

/// Folds SplitMix64 over the four numbers.
inline uint64_t stage_random_seed(uint64_t run_seed, int64_t step, int stage, int microbatch) {
  uint64_t state = run_seed;
  for (uint64_t part : {static_cast<uint64_t>(step), static_cast<uint64_t>(stage), static_cast<uint64_t>(microbatch)})
    state = mix64(state + kGoldenGamma + part);
  return state;
}

}  // namespace plumbline::microbatch

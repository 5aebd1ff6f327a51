// The seed of the random numbers that one stage draws for one micro-batch.
//
// The seed depends only on (run seed, step, stage, micro-batch): every placement and every order of execution draws the
// same dropout masks, and the recompute of a stage repeats them.
#pragma once

#include <cstdint>

namespace plumbline::microbatch {

/// Folds splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014) over the four numbers.
inline uint64_t stage_random_seed(uint64_t run_seed, int64_t step, int stage, int microbatch) {
  uint64_t state = run_seed;
  for (uint64_t part : {static_cast<uint64_t>(step), static_cast<uint64_t>(stage), static_cast<uint64_t>(microbatch)}) {
    state += 0x9e3779b97f4a7c15ULL + part;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    state ^= state >> 31;
  }
  return state;
}

}  // namespace plumbline::microbatch

// The mixing function of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014;
// constants of Vigna's public-domain splitmix64.c). It must never change: the tensors of the corpus are generated from
// it, and every random draw of a stage.
#pragma once

#include <cstdint>

namespace plumbline {

/// What SplitMix64 adds to its state for each output: 2^64 divided by the golden ratio.
inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15u;

/// Every bit of the result depends on all of `z`; no two `z` have the same result.
constexpr uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace plumbline

// Numbers from (seed, name, index): the same on every rank, machine and compiler, in any order of access.
//
// SplitMix64 (runtime/mix64.h) applies a mixing function to a counter, so the i-th output needs no state except the
// key. The key combines the seed and the FNV-1a hash of the name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plumbline::models {

/// Output `index` (from 0) of the SplitMix64 generator that was seeded with `state`.
uint64_t splitmix64(uint64_t state, uint64_t index);

/// The stream of random numbers for a seed and a name. Immutable, so several threads may share one.
class Counter {
 public:
  Counter(uint64_t seed, std::string_view name);

  /// 64 uniform bits.
  uint64_t bits(uint64_t index) const { return splitmix64(key_, index); }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double unit(uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }
  /// Uniform in [0, count), for count >= 1; the bias of the remainder is below count / 2^64.
  int64_t below(uint64_t index, int64_t count) const;
  /// A random order of 0 .. count-1 (Fisher and Yates); uses outputs 0 .. count-2 of the stream.
  std::vector<int64_t> permutation(int64_t count) const;

 private:
  uint64_t key_;
};

}  // namespace plumbline::models

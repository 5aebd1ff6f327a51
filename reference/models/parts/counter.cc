#include "reference/models/parts/counter.h"

#include <numeric>
#include <utility>

#include "runtime/fnv1a.h"
#include "runtime/mix64.h"

namespace plumbline::models {

uint64_t splitmix64(uint64_t state, uint64_t index) { return mix64(state + (index + 1) * kGoldenGamma); }

// The seed is mixed first, so that seeds 0, 1, 2 with names that differ in few bits give different keys.
Counter::Counter(uint64_t seed, std::string_view name) : key_(splitmix64(seed, 0) ^ fnv1a(name)) {}

int64_t Counter::below(uint64_t index, int64_t count) const {
  return static_cast<int64_t>(bits(index) % static_cast<uint64_t>(count));
}

std::vector<int64_t> Counter::permutation(int64_t count) const {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = count - 1; i > 0; --i) {
    const int64_t j = below(static_cast<uint64_t>(count - 1 - i), i + 1);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
  }
  return order;
}

}  // namespace plumbline::models

// How much a long test checks: a sample, or everything.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace plumbline::testing {

/// Whether everything is checked: PLUMBLINE_IN_FULL is set, as scripts/nightly does. Otherwise tests that take long
/// check a fixed sample.
inline bool in_full() { return std::getenv("PLUMBLINE_IN_FULL") != nullptr; }

/// Whether item `number` of a list is checked: of a sample every `apart`-th, beginning with item `first`.
inline bool in_sample(std::size_t number, std::size_t apart, std::size_t first = 0) {
  return in_full() || number % apart == first;
}

/// The count of a loop that a sample shortens.
inline int in_full_or_sample(int full, int sample) { return in_full() ? full : sample; }

}  // namespace plumbline::testing

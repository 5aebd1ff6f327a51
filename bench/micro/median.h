// The middle of measured values: what a disturbed machine moves least.
#pragma once

#include <algorithm>
#include <vector>

namespace plumbline::bench {

/// The upper one of the two middle values when their number is even. `values` is not empty.
inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace plumbline::bench

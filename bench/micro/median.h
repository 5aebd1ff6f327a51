// The median: the statistic that disturbances of the machine affect least.
#pragma once

#include <algorithm>
#include <vector>

namespace plumbline::bench {

/// The upper of the two middle values if their number is even. `values` must not be empty.
inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace plumbline::bench

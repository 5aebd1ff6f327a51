// The median: the statistic that disturbances of the machine affect least.
#pragma once

#include <algorithm>
#include <vector>

namespace plumbline::bench {

/// The median of `values`, which must not be empty; of an even number of values, the upper of the two middle ones.
inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace plumbline::bench

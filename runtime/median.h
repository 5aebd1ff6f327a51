// Percentiles, and the median absolute deviation: the statistics that disturbances of the machine affect least.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace plumbline {

/// The smallest of `values` for which at least the fraction `share` of all values is not larger. `values` must not be
/// empty; 0 < share <= 1.
inline double percentile(std::vector<double> values, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::clamp<size_t>(rank, 1, values.size()) - 1);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

/// The median of `values`, which must not be empty; of an even number of values, the upper of the two middle ones.
inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// As median(), but of an even number of values the mean of the two middle ones.
inline double mean_of_middles(const std::vector<double>& values) {
  return (percentile(values, 0.5) + median(values)) / 2;
}

/// The median of the distances of `values` from their median, as a fraction of that median; 0 if the median is 0.
inline double relative_deviation(std::vector<double> values) {
  const double middle = median(values);
  for (double& value : values) value = std::abs(value - middle);
  return middle == 0 ? 0 : median(std::move(values)) / std::abs(middle);
}

}  // namespace plumbline

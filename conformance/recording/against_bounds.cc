#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/recording/against_parts.h"

namespace plumbline::conformance {
namespace {

constexpr double kSafety = 10;
constexpr double kShare = 0.5;

}  // namespace

bool comparable(const AlignedValue& value) {
  return value.expected && value.actual && value.expected->dtype == value.actual->dtype &&
         value.expected->shape == value.actual->shape && is_floating(value.expected->dtype);
}

double norm(const HostTensor& tensor) {
  double squares = 0;
  for (int64_t i = 0; i < element_count(tensor); ++i) squares += std::pow(element_as_double(tensor, i), 2);
  return std::sqrt(squares);
}

bool same_sum(const AlignedValue& value, const std::vector<const HostTensor*>& summands, double scale) {
  const double k = static_cast<double>(summands.size()) + 1;
  const double ku = k * unit_roundoff(value.expected->dtype);
  const double gamma = ku < 1 ? ku / (1 - ku) : std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < element_count(*value.expected); ++i) {
    double sum = 0;
    for (const HostTensor* summand : summands) sum += std::abs(scale * element_as_double(*summand, i));
    const double gap = std::abs(element_as_double(*value.actual, i) - element_as_double(*value.expected, i));
    if (!(gap <= 2 * gamma * sum)) return false;  // also false for NaN
  }
  return true;
}

Scatter::Scatter(const HostTensor& value) : value_(&value), largest_(static_cast<size_t>(element_count(value)), 0.0) {}

bool Scatter::add(const HostTensor& sample) {
  if (sample.dtype != value_->dtype || sample.shape != value_->shape) return false;
  for (size_t i = 0; i < largest_.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const double moved = std::abs(element_as_double(sample, index) - element_as_double(*value_, index));
    largest_[i] = std::max(largest_[i], moved);
    squares_ += moved * moved;
  }
  ++samples_;
  return true;
}

BoundedValue Scatter::bounded(const std::string& key) const {
  const double u = unit_roundoff(value_->dtype), samples = samples_;
  const double rms = largest_.empty() ? 0 : std::sqrt(squares_ / (samples * static_cast<double>(largest_.size())));
  std::vector<double> expected(largest_.size()), bounds(largest_.size());
  for (size_t i = 0; i < largest_.size(); ++i) {
    expected[i] = element_as_double(*value_, static_cast<int64_t>(i));
    bounds[i] = kSafety * std::max({largest_[i], u * std::abs(expected[i]), kShare * rms});
  }
  const double length = norm(*value_);
  const double off = kSafety * std::max(std::sqrt(squares_ / samples), u * length);
  BoundedValue bounded{.expected = make_f64(value_->shape, expected), .bounds = {}};
  bounded.bounds.elements.emplace(key, make_f64(value_->shape, bounds));
  // The gate is relative to the value's norm, or to 1 if the norm is 0.
  bounded.bounds.norms.emplace(key, length > 0 ? NormGate{off / length, 0} : NormGate{off, 1});
  return bounded;
}

double BoundedValue::largest_ratio(const HostTensor& actual) const {
  const HostTensor& bound = bounds.elements.begin()->second;
  double largest = 0;
  for (int64_t i = 0; i < element_count(expected); ++i) {
    const double gap = std::abs(element_as_double(actual, i) - element_as_double(expected, i));
    if (gap > 0) largest = std::max(largest, gap / element_as_double(bound, i));
  }
  return largest;
}

}  // namespace plumbline::conformance

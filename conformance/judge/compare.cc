#include "conformance/judge/compare.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/error.h"
#include "runtime/types/float_bits.h"
#include "runtime/types/types.h"

namespace plumbline::conformance {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<int64_t> position_of(int64_t index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = index % shape[d];
    index /= shape[d];
  }
  return position;
}

template <typename T>
std::string shortest(T value) {
  std::array<char, 64> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string value_text(const HostTensor& tensor, int64_t index) {
  if (tensor.dtype == "I64") {
    int64_t value;
    std::memcpy(&value, tensor.data.data() + index * 8, sizeof(value));
    return std::to_string(value);
  }
  const double value = element_as_double(tensor, index);
  return tensor.dtype == "F64" ? shortest(value) : shortest(static_cast<float>(value));
}

bool same_element(const HostTensor& a, const HostTensor& b, int64_t index, CompareMode mode) {
  if (mode == CompareMode::Bitwise || !is_floating(a.dtype)) return same_bits(a, b, index);
  return element_as_double(a, index) == element_as_double(b, index);
}

/// A sum of squares, scaled by the largest magnitude so that float64 values neither over- nor underflow.
class Norm {
 public:
  void add(double value) {
    const double magnitude = std::abs(value);
    if (magnitude == 0.0) return;
    if (!std::isfinite(magnitude)) finite_ = false;
    if (magnitude > scale_) {
      sum_ = 1.0 + sum_ * (scale_ / magnitude) * (scale_ / magnitude);
      scale_ = magnitude;
    } else {
      sum_ += (magnitude / scale_) * (magnitude / scale_);
    }
  }
  double value() const { return finite_ ? scale_ * std::sqrt(sum_) : infinity; }

 private:
  double scale_ = 0.0;
  double sum_ = 0.0;
  bool finite_ = true;
};

double relative(double error, double reference) {
  if (error == 0.0) return 0.0;
  return std::isfinite(error) && reference > 0.0 ? error / reference : infinity;
}

/// |actual - expected|; infinite if either is not finite.
double distance(double expected, double actual) {
  const double difference = std::abs(actual - expected);
  return std::isfinite(difference) ? difference : infinity;
}

/// `gap` in units of the bound: 0 for a gap of 0, infinite if either is not finite.
double ratio_of_bound(double gap, double bound) {
  if (!std::isfinite(bound) || bound < 0.0 || !std::isfinite(gap)) return infinity;
  if (gap == 0.0) return 0.0;
  return bound > 0.0 ? gap / bound : infinity;
}

bool in_bound(double gap, double bound) {
  return std::isfinite(bound) && bound >= 0.0 && std::isfinite(gap) && gap <= bound;
}

/// Fills in the position of the difference and its neighbours. `judge` sets `differs` and the ratio of an element.
template <typename JudgeElement>
void point_at(Difference& difference, const HostTensor& expected, const HostTensor& actual, int64_t index,
              const JudgeElement& judge) {
  difference.index = index;
  difference.position = position_of(index, expected.shape);
  difference.expected = element_as_double(expected, index);
  difference.actual = element_as_double(actual, index);
  const int64_t end = std::min(index + kNeighbours + 1, difference.elements);
  for (int64_t i = std::max<int64_t>(0, index - kNeighbours); i < end; ++i) {
    Neighbour neighbour{i, position_of(i, expected.shape), value_text(expected, i), value_text(actual, i)};
    judge(neighbour);
    if (neighbour.differs && neighbour.expected_text == neighbour.actual_text) {  // two NaNs, say
      neighbour.expected_text += " (" + bits_of(expected, i) + ")";
      neighbour.actual_text += " (" + bits_of(actual, i) + ")";
    }
    if (i == index) {
      difference.expected_text = neighbour.expected_text;
      difference.actual_text = neighbour.actual_text;
    }
    difference.around.push_back(std::move(neighbour));
  }
}

/// Fills in the value fields; returns whether the tensors are equal under `mode`.
bool equal_values(const HostTensor& expected, const HostTensor& actual, CompareMode mode, Difference& difference) {
  if (expected.data == actual.data && (mode == CompareMode::Bitwise || !is_floating(expected.dtype))) return true;
  Norm error;
  Norm reference;
  int64_t first = -1;
  for (int64_t i = 0; i < difference.elements; ++i) {
    const double e = element_as_double(expected, i);
    reference.add(e);
    if (same_element(expected, actual, i, mode)) continue;
    if (first < 0) first = i;
    ++difference.differing;
    const double gap = distance(e, element_as_double(actual, i));
    difference.max_abs = std::max(difference.max_abs, gap);
    error.add(gap);
  }
  if (first < 0) return true;
  difference.relative_norm = relative(error.value(), reference.value());
  point_at(difference, expected, actual, first,
           [&](Neighbour& n) { n.differs = !same_element(expected, actual, n.index, mode); });
  return false;
}

/// equal_values() for Bounded: `index` is the element with the largest gap in units of its bound.
bool within_bounds(const HostTensor& expected, const HostTensor& actual, const HostTensor& bound, const NormGate& gate,
                   Difference& difference) {
  difference.bounded = true;
  difference.norm_limit = gate.limit;
  Norm error;
  Norm reference;
  int64_t worst = -1;
  for (int64_t i = 0; i < difference.elements; ++i) {
    const double e = element_as_double(expected, i);
    const double b = element_as_double(bound, i);
    const double gap = distance(e, element_as_double(actual, i));
    const double ratio = ratio_of_bound(gap, b);
    if (!in_bound(gap, b)) ++difference.differing;
    if (worst < 0 || ratio > difference.max_ratio_of_bound) {
      worst = i;
      difference.max_ratio_of_bound = ratio;
    }
    difference.max_abs = std::max(difference.max_abs, gap);
    reference.add(e);
    error.add(gap);
  }
  difference.relative_norm = relative(error.value(), std::max(reference.value(), gate.floor));
  if (difference.differing > 0) {
    difference.what = DifferenceKind::Value;
  } else if (!(difference.relative_norm <= gate.limit)) {
    difference.what = DifferenceKind::Norm;
  } else {
    return true;
  }
  point_at(difference, expected, actual, worst, [&](Neighbour& n) {
    const double gap = distance(element_as_double(expected, n.index), element_as_double(actual, n.index));
    const double b = element_as_double(bound, n.index);
    n.differs = !in_bound(gap, b);
    n.ratio_of_bound = ratio_of_bound(gap, b);
  });
  return false;
}

struct Limits {
  const HostTensor& bound;
  const NormGate& gate;
};

Limits limits_of(const std::string& key, const HostTensor& expected, const Bounds& bounds) {
  const auto bound = bounds.elements.find(key);
  const auto gate = bounds.norms.find(key);
  if (expected.dtype != "F64" || bound == bounds.elements.end() || gate == bounds.norms.end() ||
      bound->second.dtype != "F64" || bound->second.shape != expected.shape)
    throw Error("bounded truth of " + key + " is incomplete: value, bound and norm gate in f64 are needed");
  return {bound->second, gate->second};
}

/// Compares two tensors under one key; returns whether they agree, and fills in `difference`.
bool agree(const std::string& key, const HostTensor& expected, const HostTensor& actual, CompareMode mode,
           const Bounds& bounds, Difference& difference) {
  difference.expected_form = describe(expected);
  difference.actual_form = describe(actual);
  difference.elements = element_count(expected);
  const bool bounded = mode == CompareMode::Bounded && is_floating(expected.dtype);
  difference.what = DifferenceKind::Dtype;
  if (bounded ? !is_floating(actual.dtype) : expected.dtype != actual.dtype) return false;
  difference.what = DifferenceKind::Shape;
  if (expected.shape != actual.shape) return false;
  difference.what = DifferenceKind::Value;
  if (!bounded) return equal_values(expected, actual, mode, difference);
  const auto [bound, gate] = limits_of(key, expected, bounds);
  return within_bounds(expected, actual, bound, gate, difference);
}

}  // namespace

std::string_view difference_name(DifferenceKind kind) {
  static constexpr std::array<std::string_view, 6> names = {"missing", "unexpected", "dtype", "shape", "value", "norm"};
  return names[static_cast<size_t>(kind)];
}

std::vector<Difference> compare(const TensorMap& expected, const TensorMap& actual, CompareMode mode,
                                const Bounds& bounds) {
  std::vector<Difference> differences;
  for (const auto& [text, tensor] : expected) {
    Difference difference;
    difference.key = reference::parse_result_key(text);
    const auto found = actual.find(text);
    if (found == actual.end()) {
      difference.what = DifferenceKind::Missing;
      difference.expected_form = describe(tensor);
    } else if (agree(text, tensor, found->second, mode, bounds, difference)) {
      continue;
    }
    differences.push_back(std::move(difference));
  }
  for (const auto& [text, tensor] : actual) {
    if (expected.contains(text)) continue;
    Difference difference;
    difference.key = reference::parse_result_key(text);
    difference.what = DifferenceKind::Unexpected;
    difference.actual_form = describe(tensor);
    differences.push_back(std::move(difference));
  }
  std::sort(differences.begin(), differences.end(),
            [](const Difference& a, const Difference& b) { return reference::causal_less(a.key, b.key); });
  return differences;
}

BoundUse bound_use(const TensorMap& expected, const TensorMap& actual, const Bounds& bounds) {
  BoundUse use;
  for (const auto& [key, tensor] : expected) {
    const auto found = actual.find(key);
    if (found == actual.end() || !is_floating(tensor.dtype) || !is_floating(found->second.dtype) ||
        found->second.shape != tensor.shape)
      continue;
    const auto [bound, gate] = limits_of(key, tensor, bounds);
    Difference measured;
    measured.elements = element_count(tensor);
    within_bounds(tensor, found->second, bound, gate, measured);
    const double norm_ratio = relative(measured.relative_norm, gate.limit);
    if (use.key.empty() || measured.max_ratio_of_bound > use.ratio)
      use.key = key, use.ratio = measured.max_ratio_of_bound;
    if (use.norm_key.empty() || norm_ratio > use.norm_ratio) use.norm_key = key, use.norm_ratio = norm_ratio;
  }
  return use;
}

bool same_bits(const HostTensor& a, const HostTensor& b, int64_t index) {
  const size_t size = element_size(a.dtype);
  return std::memcmp(a.data.data() + index * size, b.data.data() + index * size, size) == 0;
}

std::string bits_of(const HostTensor& tensor, int64_t index) {
  const size_t size = element_size(tensor.dtype);
  std::string text = "0x";
  for (size_t i = size; i-- > 0;) {
    const auto byte = std::to_integer<unsigned>(tensor.data[static_cast<size_t>(index) * size + i]);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

double ulps_between(std::string_view dtype, double a, double b) {
  const std::span<const types::DtypeInfo> all = types::dtypes();
  const auto format = std::ranges::find(all, dtype, &types::DtypeInfo::short_name);
  if (format == all.end() || format->digits == 0 || !std::isfinite(a) || !std::isfinite(b)) return -1;
  const auto [less, more] = std::minmax({types::steps_from_zero(a, *format), types::steps_from_zero(b, *format)});
  return static_cast<double>(static_cast<uint64_t>(more) - static_cast<uint64_t>(less));
}

std::string first_nan(const TensorMap& results) {
  using enum reference::ResultKind;
  for (const auto& [text, tensor] : results) {
    const reference::ResultKind kind = reference::parse_result_key(text).kind;
    if (kind != Loss && kind != Grad && kind != Param && kind != OptimizerState) continue;
    for (int64_t i = 0; is_floating(tensor.dtype) && i < element_count(tensor); ++i)
      if (std::isnan(element_as_double(tensor, i))) return text;
  }
  return "";
}

double zero_fraction(const TensorMap& results) {
  int64_t zeros = 0;
  int64_t elements = 0;
  for (const auto& [text, tensor] : results) {
    const reference::ResultKind kind = reference::parse_result_key(text).kind;
    if (kind != reference::ResultKind::Backward && kind != reference::ResultKind::Grad) continue;
    const int64_t count = element_count(tensor);
    elements += count;
    for (int64_t i = 0; i < count; ++i) zeros += element_as_double(tensor, i) == 0.0;
  }
  return elements == 0 ? 0.0 : static_cast<double>(zeros) / static_cast<double>(elements);
}

}  // namespace plumbline::conformance

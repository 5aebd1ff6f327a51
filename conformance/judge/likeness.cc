#include "conformance/judge/likeness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "conformance/judge/verdict/finding.h"
#include "runtime/text/join.h"

namespace plumbline::conformance {
namespace {

constexpr int kLargestTerm = 64;
constexpr int kLargestPower = 4096;  ///< of n and 1/n
constexpr int64_t kFewElements = 4;  ///< fewer are related by some fraction too often
constexpr int kLargestTermOfFew = 4;
/// The tolerance of a factor in roundings of the dtype: a sum of scaled terms rounds a few times.
constexpr double kRoundings = 8;

/// |actual - expected p/q| may be `of(i)` |p/q|: rounding errors scale with the values.
struct Tolerance {
  double constant = 0.0;
  const HostTensor* bound = nullptr;
  double of(int64_t i) const { return bound == nullptr ? constant : element_as_double(*bound, i); }
};

bool fits(const HostTensor& expected, const HostTensor& actual, const Tolerance& tolerance, double p, double q) {
  for (int64_t i = 0; i < element_count(expected); ++i) {
    const double gap = std::abs(element_as_double(actual, i) * q - element_as_double(expected, i) * p);
    if (!(gap <= tolerance.of(i) * std::abs(p))) return false;
  }
  return true;
}

/// The factor with small terms: at most `most_term`, or n and 1/n up to `most_power`. Terms that the tolerance cannot
/// tell apart are not tried: fractions with denominators up to n are 1/n^2 apart.
std::optional<Factor> factor_within(const HostTensor& expected, const HostTensor& actual, const Tolerance& tolerance,
                                    int64_t largest, double most_term, double most_power) {
  const double of_largest = element_as_double(expected, largest);
  const double ratio = element_as_double(actual, largest) / of_largest;
  const double resolved = tolerance.of(largest) == 0.0 ? std::numeric_limits<double>::infinity()
                                                       : std::abs(of_largest) / (8 * tolerance.of(largest));
  const double term = std::min(most_term, std::sqrt(resolved)), power = std::min(most_power, resolved);
  const auto fit = [&](double p, double q) { return fits(expected, actual, tolerance, p, q); };
  const auto factor = [](double p, double q) { return Factor{static_cast<int>(p), static_cast<int>(q)}; };
  for (double q = 1; q <= term; ++q) {
    const double p = std::nearbyint(ratio * q);
    if (p != 0.0 && std::abs(p) <= (q == 1 ? power : term) && fit(p, q)) return factor(p, q);
  }
  const double inverse = std::nearbyint(1 / ratio);
  if (std::abs(inverse) > term && std::abs(inverse) <= power) {
    const double sign = inverse < 0 ? -1 : 1;
    if (fit(sign, std::abs(inverse))) return factor(sign, std::abs(inverse));
  }
  return std::nullopt;
}

bool all_zero(const HostTensor& tensor) {
  for (int64_t i = 0; i < element_count(tensor); ++i)
    if (element_as_double(tensor, i) != 0.0) return false;
  return true;
}

/// k if n is M^k with k > 0; otherwise 0.
int power_of(int n, int base) {
  int k = 0;
  for (; base > 1 && n > 1 && n % base == 0; n /= base) ++k;
  return n == 1 ? k : 0;
}

bool equal_under(const Compared& compared, const std::string& key, const HostTensor& actual) {
  return compare({{key, compared.expected.at(key)}}, {{key, actual}}, compared.mode, compared.bounds).empty();
}

std::optional<Factor> factor_under(const Compared& compared, const std::string& key, const HostTensor& actual) {
  const auto bound = compared.bounds.elements.find(key);
  return factor_between(compared.expected.at(key), actual, compared.mode,
                        bound == compared.bounds.elements.end() ? nullptr : &bound->second);
}

/// Another expected tensor that the value may be: the smallest is the nearest.
using Nearness = std::tuple<int, int, int, int, std::string>;

/// Nullopt unless `other` is of the same kind and differs from `key` in micro-batch and step, or in stage and name.
std::optional<Nearness> nearness(const reference::ResultKey& key, const reference::ResultKey& other) {
  if (other.kind != key.kind || other == key) return std::nullopt;
  const bool same_tensor = other.name == key.name && other.stage == key.stage;
  const bool same_time = other.microbatch == key.microbatch && other.step == key.step;
  if (!same_tensor && !same_time) return std::nullopt;
  const int rank = !same_tensor                         ? (other.name == key.name ? 3 : 4)
                   : other.step == key.step             ? 0
                   : other.microbatch == key.microbatch ? 1
                                                        : 2;
  return Nearness(rank, other.step, other.microbatch, other.stage, other.name);
}

std::string whose(const reference::ResultKey& key, const reference::ResultKey& other) {
  const std::string microbatch = "micro-batch " + std::to_string(other.microbatch);
  const std::string step = "step " + std::to_string(other.step);
  if (other.name != key.name) return "`" + other.name + "`'s";
  if (other.stage != key.stage) return "stage " + std::to_string(other.stage) + "'s";
  if (other.step == key.step) return microbatch + "'s";
  return other.microbatch == key.microbatch ? step + "'s" : "that of " + microbatch + " in " + step;
}

/// What the gradients of a group of parameters have in common.
struct Group {
  bool any = false;              ///< whether some gradient is not zero
  std::optional<Factor> factor;  ///< of all; nullopt: they have no single factor
  void add(const std::optional<Factor>& of_one) {
    factor = any && factor != of_one ? std::nullopt : of_one;
    any = true;
  }
};

}  // namespace

std::optional<Factor> factor_between(const HostTensor& expected, const HostTensor& actual, CompareMode mode,
                                     const HostTensor* bound) {
  const bool same_dtype = mode == CompareMode::Bounded || expected.dtype == actual.dtype;
  if (!is_floating(expected.dtype) || !is_floating(actual.dtype) || !same_dtype || expected.shape != actual.shape)
    return std::nullopt;
  int64_t largest = 0, nonzero = 0;
  const auto magnitude = [&](int64_t i) { return std::abs(element_as_double(expected, i)); };
  for (int64_t i = 0; i < element_count(expected); ++i) {
    if (magnitude(i) > magnitude(largest)) largest = i;
    nonzero += magnitude(i) != 0.0;
  }
  if (nonzero == 0) return all_zero(actual) ? std::optional(Factor{}) : std::nullopt;
  const double ratio = element_as_double(actual, largest) / element_as_double(expected, largest);
  if (!std::isfinite(ratio)) return std::nullopt;
  if (all_zero(actual)) return Factor{0, 1};

  const bool few = nonzero < kFewElements;
  const auto within = [&](const Tolerance& tolerance) {
    return factor_within(expected, actual, tolerance, largest, few ? kLargestTermOfFew : kLargestTerm,
                         few ? kLargestTerm : kLargestPower);
  };
  if (mode == CompareMode::Bounded) return within({0.0, bound});
  const std::optional<Factor> exact = within({});
  return exact ? exact : within({kRoundings * unit_roundoff(expected.dtype) * magnitude(largest)});
}

std::string factor_text(const Factor& factor, int microbatches) {
  const auto [p, q] = factor;
  const std::string text =
      (q == 1 ? std::to_string(p) + " times" : std::to_string(p) + "/" + std::to_string(q) + " of") +
      " what is expected";
  const int k = power_of(q == 1 ? p : q, microbatches);
  if (k == 0 || (q != 1 && p != 1)) return text;
  const std::string power = k == 1 ? "M" : "M^" + std::to_string(k);
  const std::string is = "M = " + std::to_string(microbatches) + " micro-batches)";
  return text + " (" + (q == 1 && k == 1 ? "" : (q == 1 ? "" : "1/") + power + ", ") + is;
}

std::string likeness(const reference::ResultKey& key, const Compared& compared, int microbatches) {
  const std::string text = to_string(key);
  const auto expected = compared.expected.find(text), actual = compared.actual.find(text);
  if (expected == compared.expected.end() || actual == compared.actual.end() ||
      expected->second.shape != actual->second.shape)
    return {};
  if (all_zero(actual->second)) return "zero";
  std::optional<std::pair<Nearness, std::string>> nearest;
  for (const auto& [other_text, tensor] : compared.expected) {
    if (tensor.shape != actual->second.shape) continue;
    const reference::ResultKey other = reference::parse_result_key(other_text);
    const std::optional<Nearness> near = nearness(key, other);
    if (near && (!nearest || *near < nearest->first) && equal_under(compared, other_text, actual->second))
      nearest = {*near, whose(key, other)};
  }
  if (nearest) return nearest->second;
  const std::optional<Factor> factor = factor_under(compared, text, actual->second);
  return factor && *factor != Factor{} ? factor_text(*factor, microbatches) : "";
}

std::map<std::string, std::vector<int>> stages_of_parameters(const TensorMap& expected) {
  std::map<std::string, std::vector<int>> stages;
  for (const auto& [text, tensor] : expected) {
    const reference::ResultKey key = reference::parse_result_key(text);
    if (key.kind != reference::ResultKind::Partial) continue;
    std::vector<int>& of = stages[key.name];
    const auto place = std::ranges::lower_bound(of, key.stage);
    if (place == of.end() || *place != key.stage) of.insert(place, key.stage);
  }
  return stages;
}

std::string gradient_pattern(const Compared& compared, const std::map<std::string, std::vector<int>>& stages,
                             int microbatches) {
  std::map<int, std::map<std::vector<int>, Group>> steps;
  std::optional<int> wrong;  // the first step with a wrong gradient
  for (const auto& [text, tensor] : compared.expected) {
    const reference::ResultKey key = reference::parse_result_key(text);
    if (key.kind != reference::ResultKind::Grad || !is_floating(tensor.dtype)) continue;
    const auto actual = compared.actual.find(text);
    if (actual == compared.actual.end()) return {};
    const bool equal = equal_under(compared, text, actual->second);
    if (!equal && (!wrong || key.step < *wrong)) wrong = key.step;
    if (equal && all_zero(tensor)) continue;  // has every factor
    const auto of = stages.find(key.name);
    Group& group = steps[key.step][of == stages.end() ? std::vector<int>() : of->second];
    if (equal) {
      group.add(Factor{});
      continue;
    }
    group.add(factor_under(compared, text, actual->second));
  }
  if (!wrong) return {};
  const std::map<std::vector<int>, Group>& groups = steps[*wrong];
  Group all;
  bool some = false;
  for (const auto& [of, group] : groups) {
    all.add(group.factor);
    some = some || group.factor;
  }
  if (all.factor && *all.factor != Factor{}) return "every gradient is " + factor_text(*all.factor, microbatches);
  if (all.factor) return compared.mode == CompareMode::Bounded ? "" : "the gradients differ by a few roundings only";
  if (!some) return "no single factor explains the gradients";
  std::vector<std::string> parts;
  for (const auto& [of, group] : groups) {
    const std::string where = of.empty() ? "elsewhere" : "on " + stages_text(of);
    if (!group.factor)
      parts.push_back("off by no single factor " + where);
    else if (*group.factor == Factor{})
      parts.push_back("right " + where);
    else
      parts.push_back(factor_text(*group.factor, microbatches) + " " + where);
  }
  return "the gradients are " + join(parts);
}

}  // namespace plumbline::conformance

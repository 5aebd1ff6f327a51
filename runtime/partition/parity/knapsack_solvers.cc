#include "runtime/partition/parity/knapsack_solvers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/error.h"
#include "runtime/partition/budget/knapsack_table.h"

namespace plumbline::partition {
namespace {

/// Fills `row` with the largest value of the given items for every capacity up to its last.
void fill_row(std::span<const int64_t> weights, std::span<const double> values, std::span<double> row) {
  std::fill(row.begin(), row.end(), 0);
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t c = row.size(); c-- > static_cast<size_t>(weights[i]);)
      row[c] = std::max(row[c], row[c - weights[i]] + values[i]);
}

double sum_of(const std::vector<int>& items, std::span<const double> amounts) {
  double sum = 0;
  for (int i : items) sum += amounts[i];
  return sum;
}

}  // namespace

std::vector<int> items_left(const KnapsackChoice& choice, size_t size) {
  const std::vector<char> kept = kept_items(choice, size);
  std::vector<int> left;
  for (size_t item = 0; item < size; ++item)
    if (!kept[item]) left.push_back(static_cast<int>(item));
  return left;
}

std::vector<double> capacities_between(double least, double most, int count) {
  std::vector<double> capacities;
  for (int i = 0; i < count; ++i) capacities.push_back(least + i * (most - least) / (count - 1));
  return capacities;
}

KnapsackChoice knapsack_hirschberg(const KnapsackProblem& problem) {
  check(problem);
  const std::vector<int64_t> weights = ticks(problem.weights);
  const std::span<const double> values = problem.values;
  const int64_t all = std::min(ticks(problem.capacity), std::accumulate(weights.begin(), weights.end(), int64_t{0}));
  std::vector<double> first_row(all + 1), second_row(all + 1);
  struct Segment {
    size_t begin, end;
    int64_t capacity;
  };
  std::vector<Segment> segments{{0, weights.size(), all}};
  KnapsackChoice choice;
  while (!segments.empty()) {
    const auto [begin, end, capacity] = segments.back();
    segments.pop_back();
    if (begin == end) continue;
    if (end - begin == 1) {
      if (weights[begin] <= capacity && values[begin] > 0) choice.kept.push_back(static_cast<int>(begin));
      continue;
    }
    const size_t middle = begin + (end - begin) / 2;
    const auto row_of = [&](std::vector<double>& row, size_t from, size_t to) {
      fill_row(std::span(weights).subspan(from, to - from), values.subspan(from, to - from),
               std::span(row).first(capacity + 1));
    };
    row_of(first_row, begin, middle);
    row_of(second_row, middle, end);
    int64_t of_second = 0;
    double best = -1;
    for (int64_t c = 0; c <= capacity; ++c)
      if (second_row[c] + first_row[capacity - c] > best) {
        best = second_row[c] + first_row[capacity - c];
        of_second = c;
      }
    segments.push_back({middle, end, of_second});
    segments.push_back({begin, middle, capacity - of_second});  // taken next, so that kept items come out ascending
  }
  choice.value = sum_of(choice.kept, values);
  return choice;
}

KnapsackChoice knapsack_knee_point(const KnapsackProblem& problem) {
  constexpr double kLeast = 0.001;
  if (problem.capacity <= kLeast) return knapsack_dp(problem);
  const std::vector<double> capacities = capacities_between(kLeast, problem.capacity, 100);
  const std::vector<KnapsackChoice> choices = knapsack_dp(problem, capacities);
  const double all_weights = std::accumulate(problem.weights.begin(), problem.weights.end(), 0.0);
  const double all_values = std::accumulate(problem.values.begin(), problem.values.end(), 0.0);
  if (all_weights == 0 || all_values == 0) return knapsack_dp(problem);
  std::vector<KnapsackShares> shares;
  for (const KnapsackChoice& choice : choices) {
    const std::vector<int> left = items_left(choice, problem.weights.size());
    shares.push_back({.memory = sum_of(choice.kept, problem.weights) / all_weights,
                      .recomputation = sum_of(left, problem.values) / all_values});
  }
  const std::optional<int> knee = knee_point(shares);
  return knee ? choices[*knee] : knapsack_dp(problem);
}

KnapsackChoice knapsack_in_bytes(std::span<const int64_t> bytes, std::span<const double> values, int64_t capacity) {
  PLUMBLINE_CHECK(bytes.size() == values.size(), "a knapsack's items have one size and one value");
  if (capacity < 0 || bytes.empty()) return {};
  capacity = std::min(capacity, std::accumulate(bytes.begin(), bytes.end(), int64_t{0}));
  const int64_t unit = bytes_per_unit(bytes, capacity);
  std::vector<int64_t> units;
  for (int64_t size : bytes) units.push_back((size + unit - 1) / unit);
  KnapsackChoice choice = KnapsackTable<double>(units, values, capacity / unit).choose(capacity / unit);

  // Fills the capacity that rounding up left over.
  std::vector<char> kept(bytes.size(), 0);
  for (int i : choice.kept) {
    kept[i] = 1;
    capacity -= bytes[i];
  }
  const std::vector<double> weights(bytes.begin(), bytes.end());
  for (int i : by_value_for_weight(weights, values)) {
    if (kept[i] || values[i] <= 0 || bytes[i] > capacity) continue;
    capacity -= bytes[i];
    choice.kept.push_back(i);
  }
  std::sort(choice.kept.begin(), choice.kept.end());
  choice.value = sum_of(choice.kept, values);
  return choice;
}

int64_t bytes_per_unit(std::span<const int64_t> bytes, int64_t capacity) {
  constexpr int64_t kMostBits = int64_t{1} << 27, kMostUnits = int64_t{1} << 22;
  int64_t divisor = 0;
  for (const int64_t size : bytes) divisor = std::gcd(divisor, size);
  const int64_t units = std::clamp<int64_t>(kMostBits / std::max<int64_t>(std::ssize(bytes), 1), 1, kMostUnits);
  return std::max({divisor, (capacity + units - 1) / units, int64_t{1}});
}

std::optional<int> knee_point(std::span<const KnapsackShares> choices) {
  if (choices.empty()) return std::nullopt;
  KnapsackShares least = choices[0], most = choices[0];
  for (const KnapsackShares& choice : choices) {
    least.memory = std::min(least.memory, choice.memory);
    least.recomputation = std::min(least.recomputation, choice.recomputation);
    most.memory = std::max(most.memory, choice.memory);
    most.recomputation = std::max(most.recomputation, choice.recomputation);
  }
  const double memory_range = most.memory - least.memory;
  const double recomputation_range = most.recomputation - least.recomputation;
  if (memory_range == 0 || recomputation_range == 0) return std::nullopt;
  int nearest = 0;
  double distance = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < choices.size(); ++i) {
    const double memory = (choices[i].memory - least.memory) / memory_range;
    const double recomputation = (choices[i].recomputation - least.recomputation) / recomputation_range;
    const double here = std::sqrt(recomputation * recomputation + memory * memory);
    if (here >= distance) continue;
    distance = here;
    nearest = static_cast<int>(i);
  }
  return nearest;
}

}  // namespace plumbline::partition

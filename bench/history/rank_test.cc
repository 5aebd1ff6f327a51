#include "bench/history/rank_test.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/error.h"

namespace plumbline::bench {
namespace {

constexpr size_t kExactUpTo = 40;
constexpr size_t kMostForPairs = 1000;

/// Twice the ranks of all samples, those of `a` first: whole numbers, with mean ranks for equal samples.
std::vector<int> doubled_ranks(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  std::vector<double> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> ranks;
  for (const double value : all) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back(static_cast<int>((first - sorted.begin()) + (last - sorted.begin()) + 1));
  }
  return ranks;
}

/// The probability of each sum of `chosen` of the `ranks`, if all choices are equally likely.
std::vector<double> sum_probabilities(const std::vector<int>& ranks, size_t chosen) {
  size_t most = 0;
  for (const int rank : ranks) most += rank;
  // ways[k][s]: choices of k of the ranks so far with sum s. Doubles count exactly up to 2^53; beyond, the relative
  // error of a sum of positive numbers stays at some units in the last place.
  std::vector<std::vector<double>> ways(chosen + 1, std::vector<double>(most + 1, 0.0));
  ways[0][0] = 1;
  size_t seen = 0, largest = 0;
  for (const int rank : ranks) {
    largest += rank;
    for (size_t k = std::min(++seen, chosen); k > 0; --k)
      for (size_t s = largest; s + 1 > static_cast<size_t>(rank); --s) ways[k][s] += ways[k - 1][s - rank];
  }
  double all = 0;
  for (const double count : ways[chosen]) all += count;
  for (double& count : ways[chosen]) count /= all;
  return ways[chosen];
}

/// At most kMostForPairs of the samples, evenly chosen by rank.
std::vector<double> thinned(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  if (sorted.size() <= kMostForPairs) return sorted;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> chosen;
  for (size_t i = 0; i < kMostForPairs; ++i)
    chosen.push_back(sorted[(2 * i + 1) * sorted.size() / (2 * kMostForPairs)]);
  return chosen;
}

double normal_upper_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

/// The variance of U without ties.
double variance_of_u(double m, double n) { return m * n * (m + n + 1) / 12; }

}  // namespace

double rank_test(std::span<const double> a, std::span<const double> b) {
  PLUMBLINE_CHECK(!a.empty() && !b.empty(), "the rank test needs samples on both sides");
  const std::vector<int> ranks = doubled_ranks(a, b);
  const auto m = static_cast<double>(a.size()), n = static_cast<double>(b.size());
  int sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += ranks[i];
  const double mean = m * (m + n + 1);  // of the doubled ranks' sum
  const double distance = std::abs(sum - mean);
  if (ranks.size() <= kExactUpTo) {
    const std::vector<double> probabilities = sum_probabilities(ranks, a.size());
    double p = 0;
    for (size_t s = 0; s < probabilities.size(); ++s)
      if (std::abs(static_cast<double>(s) - mean) >= distance) p += probabilities[s];
    return std::min(p, 1.0);
  }
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  double ties = 0;
  for (size_t i = 0; i < sorted.size();) {
    const auto equal = static_cast<double>(std::upper_bound(sorted.begin(), sorted.end(), sorted[i]) - sorted.begin()) -
                       static_cast<double>(i);
    ties += equal * equal * equal - equal;
    i += static_cast<size_t>(equal);
  }
  const double variance = m * n / 12 * (m + n + 1 - ties / ((m + n) * (m + n - 1)));
  if (variance <= 0) return 1;
  return std::min(1.0, 2 * normal_upper_tail(std::max(0.0, distance / 2 - 0.5) / std::sqrt(variance)));
}

int critical_u(int m, int n, double significance) {
  if (static_cast<size_t>(m + n) > kExactUpTo) {
    // the z at which both tails together are as likely as `significance`
    double low = 0, high = 40;
    for (int i = 0; i < 100; ++i) {
      const double z = (low + high) / 2;
      (2 * normal_upper_tail(z) > significance ? low : high) = z;
    }
    return static_cast<int>(std::floor(m * double(n) / 2 - 0.5 - high * std::sqrt(variance_of_u(m, n))));
  }
  std::vector<int> ranks(m + n);
  for (int i = 0; i < m + n; ++i) ranks[i] = i + 1;
  const std::vector<double> probabilities = sum_probabilities(ranks, m);
  const int least = m * (m + 1) / 2;
  double p = 0;
  int u = 0;
  while (2 * (p += probabilities[least + u]) <= significance) ++u;
  return u - 1;
}

RatioInterval ratio_interval(std::span<const double> all_a, std::span<const double> all_b, double significance) {
  const std::vector<double> a = thinned(all_a), b = thinned(all_b);
  std::vector<double> ratios;
  ratios.reserve(a.size() * b.size());
  for (const double x : a)
    for (const double y : b) ratios.push_back(y / x);
  std::sort(ratios.begin(), ratios.end());
  const size_t count = ratios.size();
  const double middle =
      count % 2 ? ratios[count / 2] : std::sqrt(ratios[count / 2 - 1] * ratios[count / 2]);  // b/a inverts to a/b
  const int u = critical_u(static_cast<int>(a.size()), static_cast<int>(b.size()), significance);
  if (u < 0) return {middle, 0, std::numeric_limits<double>::infinity()};
  return {middle, ratios[u], ratios[count - 1 - u]};
}

}  // namespace plumbline::bench

// The rank test against counting all ways to divide the samples, and against published tables.
#include "bench/history/rank_test.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

namespace plumbline::bench {
namespace {

/// U of Mann and Whitney by its definition: pairs in which the sample of `a` is the larger one; equal ones count half.
double pairs_won(const std::vector<double>& a, const std::vector<double>& b) {
  double won = 0;
  for (const double x : a)
    for (const double y : b) won += x > y ? 1 : x == y ? 0.5 : 0;
  return won;
}

/// Divides all samples in every possible way.
double by_brute_force(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  const double middle = static_cast<double>(a.size() * b.size()) / 2;
  const double distance = std::abs(pairs_won(a, b) - middle);
  int ways = 0, as_far = 0;
  for (unsigned chosen = 0; chosen < (1u << all.size()); ++chosen) {
    if (std::popcount(chosen) != static_cast<int>(a.size())) continue;
    std::vector<double> one, other;
    for (size_t i = 0; i < all.size(); ++i) (chosen >> i & 1 ? one : other).push_back(all[i]);
    ++ways;
    as_far += std::abs(pairs_won(one, other) - middle) >= distance;
  }
  return static_cast<double>(as_far) / ways;
}

TEST(RankTest, EqualsCountingAllWaysAlsoWithTies) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> a(1 + random() % 6), b(1 + random() % 6);
    const unsigned values = seed % 2 ? 4 : 1000;  // every second set has many ties
    for (double& x : a) x = random() % values;
    for (double& x : b) x = random() % values + seed % 3;
    EXPECT_NEAR(rank_test(a, b), by_brute_force(a, b), 1e-12) << "seed " << seed;
  }
}

// The table of critical values in textbooks, after Milton, Journal of the American Statistical Association 59 (1964).
TEST(RankTest, CriticalValuesOfThePublishedTable) {
  struct Row {
    int m, n, at_5_percent, at_1_percent;
  };
  for (const Row& row : {Row{3, 3, -1, -1},
                         {4, 4, 0, -1},
                         {5, 5, 2, 0},
                         {6, 6, 5, 2},
                         {7, 7, 8, 4},
                         {8, 8, 13, 7},
                         {9, 9, 17, 11},
                         {10, 10, 23, 16},
                         {12, 12, 37, 27},
                         {15, 15, 64, 51},
                         {20, 20, 127, 105},
                         {5, 10, 8, 4},
                         {10, 20, 55, 42}}) {
    EXPECT_EQ(critical_u(row.m, row.n, 0.05), row.at_5_percent) << row.m << " and " << row.n;
    EXPECT_EQ(critical_u(row.m, row.n, 0.01), row.at_1_percent) << row.m << " and " << row.n;
  }
}

/// The number of ways in which `m` and `n` samples without ties have each U, by Mann and Whitney's recurrence.
std::vector<double> ways_of_u(int m, int n) {
  std::vector<std::vector<std::vector<double>>> ways(m + 1, std::vector<std::vector<double>>(n + 1));
  for (int i = 0; i <= m; ++i)
    for (int k = 0; k <= n; ++k) {
      ways[i][k].assign(i * k + 1, 0);
      if (i == 0 || k == 0) ways[i][k][0] = 1;
      for (int u = 0; i > 0 && k > 0 && u <= i * k; ++u) {
        if (u >= k) ways[i][k][u] += ways[i - 1][k][u - k];  // the largest sample is one of the first set
        if (u <= i * (k - 1)) ways[i][k][u] += ways[i][k - 1][u];
      }
    }
  return ways[m][n];
}

TEST(RankTest, CriticalValuesOfManySamplesAreThoseOfTheRecurrence) {
  for (const auto& [m, n, error] : {std::tuple(12, 17, 0), {20, 20, 0}, {33, 33, 1}, {25, 50, 2}, {60, 60, 3}}) {
    const std::vector<double> ways = ways_of_u(m, n);
    double all = 0, below = 0;
    for (const double count : ways) all += count;
    int critical = -1;
    while (2 * (below += ways[critical + 1]) <= 0.01 * all) ++critical;
    EXPECT_NEAR(critical_u(m, n, 0.01), critical, error) << m << " and " << n;
  }
}

// 20 000 random divisions of all samples estimate the probability to about 0.0015.
TEST(RankTest, TheNormalApproximationAgreesWithRandomDivisions) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> a(30), b(24 + seed);
    const unsigned values = seed % 2 ? 12 : 100000;
    for (double& x : a) x = random() % values;
    for (double& x : b) x = random() % values + values / 4;
    std::vector<double> all = a;
    all.insert(all.end(), b.begin(), b.end());
    const double middle = static_cast<double>(a.size() * b.size()) / 2, distance = std::abs(pairs_won(a, b) - middle);
    constexpr int kDivisions = 20'000;
    int as_far = 0;
    for (int i = 0; i < kDivisions; ++i) {
      for (size_t k = 0; k < a.size(); ++k) std::swap(all[k], all[k + random() % (all.size() - k)]);
      as_far +=
          std::abs(pairs_won({all.begin(), all.begin() + 30}, {all.begin() + 30, all.end()}) - middle) >= distance;
    }
    EXPECT_NEAR(rank_test(a, b), static_cast<double>(as_far) / kDivisions, 0.008) << "seed " << seed;
  }
}

TEST(RankTest, EqualSamplesNeverDiffer) {
  const std::vector<double> few(5, 3.0), many(40, 3.0);
  EXPECT_EQ(rank_test(few, few), 1);
  EXPECT_EQ(rank_test(many, many), 1);
}

// The interval is what the test does not reject: a's samples times a factor inside it pass, outside they do not.
TEST(RatioInterval, InvertsTheTest) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> a(8), b(9);
    for (double& x : a) x = 100 + random() % 1000 / 100.0;
    for (double& x : b) x = 110 + random() % 1000 / 100.0;
    const RatioInterval factor = ratio_interval(a, b, 0.05);
    const auto p_for = [&](double ratio) {
      std::vector<double> scaled = a;
      for (double& x : scaled) x *= ratio;
      return rank_test(scaled, b);
    };
    EXPECT_GT(p_for(factor.low * 1.0000001), 0.05) << "seed " << seed;
    EXPECT_LE(p_for(factor.low * 0.9999999), 0.05) << "seed " << seed;
    EXPECT_GT(p_for(factor.high * 0.9999999), 0.05) << "seed " << seed;
    EXPECT_LE(p_for(factor.high * 1.0000001), 0.05) << "seed " << seed;
    EXPECT_LT(factor.low, factor.ratio);
    EXPECT_LT(factor.ratio, factor.high);
  }
}

// All pairs of so many samples would need more memory than there is.
TEST(RatioInterval, OfVeryManySamplesIsThatOfSome) {
  std::mt19937 random(3);
  std::vector<double> a(200'000), b(150'000);
  for (double& x : a) x = 1 + random() % 1000 / 1000.0;
  for (double& x : b) x = 1.1 * (1 + random() % 1000 / 1000.0);
  const RatioInterval factor = ratio_interval(a, b, 0.01);
  EXPECT_NEAR(factor.ratio, 1.1, 0.002);
  EXPECT_LT(factor.low, 1.1);
  EXPECT_GT(factor.high, 1.1);
  EXPECT_LT(factor.high - factor.low, 0.1);
}

TEST(RatioInterval, TheOtherWayRoundIsTheInverse) {
  const std::vector<double> a = {1, 2, 4, 5, 6, 7}, b = {3, 4.5, 5.5, 7, 8, 9};
  const RatioInterval one = ratio_interval(a, b, 0.05), other = ratio_interval(b, a, 0.05);
  EXPECT_DOUBLE_EQ(one.ratio, 1 / other.ratio);
  EXPECT_DOUBLE_EQ(one.low, 1 / other.high);
  EXPECT_FALSE(std::isfinite(ratio_interval(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 3}, 0.05).high));
}

}  // namespace
}  // namespace plumbline::bench

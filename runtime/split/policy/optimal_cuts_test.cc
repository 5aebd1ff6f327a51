#include "runtime/split/policy/optimal_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::split {
namespace {

using Cuts = std::vector<int32_t>;

Cuts cut_anywhere(const std::vector<double>& costs, int stages) {
  return optimal_cuts(costs, std::vector<char>(costs.size() + 1, 1), stages);
}

std::string refusal(const std::vector<double>& costs, const std::vector<char>& legal, int stages) {
  return testing::refusal([&] { optimal_cuts(costs, legal, stages); });
}

std::vector<double> parts_of(const std::vector<double>& costs, const Cuts& cuts) {
  std::vector<double> parts = {0};
  for (size_t p = 0; p < costs.size(); ++p) {
    if (std::binary_search(cuts.begin(), cuts.end(), static_cast<int32_t>(p))) parts.push_back(0);
    parts.back() += costs[p];
  }
  return parts;
}

/// The best of all partitions by enumeration; nothing when there is none.
std::optional<Cuts> brute_force(const std::vector<double>& costs, const std::vector<char>& legal, int stages) {
  using Quality = std::tuple<double, double, Cuts>;
  std::optional<std::pair<Quality, Cuts>> best;
  const auto n = static_cast<int>(costs.size());
  for (unsigned set = 0; set < 1u << std::max(0, n - 1); ++set) {
    Cuts cuts;
    bool allowed = true;
    for (int p = 1; p < n; ++p) {
      if (!(set >> (p - 1) & 1u)) continue;
      allowed = allowed && legal[p];
      cuts.push_back(p);
    }
    if (!allowed || static_cast<int>(cuts.size()) != stages - 1) continue;
    double maximum = 0, squares = 0;
    for (double part : parts_of(costs, cuts)) {
      maximum = std::max(maximum, part);
      squares += part * part;
    }
    Cuts lateness;  // the last cut first, later ones smaller
    for (size_t i = cuts.size(); i-- > 0;) lateness.push_back(-cuts[i]);
    const Quality quality = {maximum, squares, lateness};
    if (!best || quality < best->first) best = {quality, cuts};
  }
  return best ? std::optional(best->second) : std::nullopt;
}

TEST(OptimalCuts, KnownAnswers) {
  EXPECT_EQ(cut_anywhere({1, 2, 3, 4, 5, 6, 7, 8}, 4), (Cuts{4, 6, 7}));
  EXPECT_EQ(cut_anywhere({8, 11, 2, 1, 18, 5, 4, 11}, 4), (Cuts{1, 4, 5})) << "8, 14, 18, 20: no maximum below 20";
  EXPECT_EQ(cut_anywhere({10, 1, 1, 1, 1, 1, 1}, 3), (Cuts{1, 4})) << "below the maximum, too, parts are even";
  EXPECT_EQ(cut_anywhere({5, 0, 0, 5}, 2), (Cuts{3})) << "what costs nothing stays with what is before it";
  EXPECT_EQ(cut_anywhere({1, 1, 1}, 3), (Cuts{1, 2}));
  EXPECT_EQ(cut_anywhere({3, 4}, 1), Cuts{});
  EXPECT_EQ(cut_anywhere({}, 1), Cuts{});
  EXPECT_EQ(optimal_cuts(std::vector<double>{1, 1, 1, 1}, std::vector<char>{1, 1, 0, 0, 1}, 2), (Cuts{1}));
}

TEST(OptimalCuts, DoNotDependOnTheUnitOfCosts) {
  for (const int exponent : {-1000, 600, 1020}) {  // of a sum, or of its square, some are beyond a double
    std::vector<double> costs = {10, 1, 1, 1, 1, 1, 1};
    for (double& cost : costs) cost = std::ldexp(cost, exponent);
    EXPECT_EQ(cut_anywhere(costs, 3), (Cuts{1, 4})) << "times 2^" << exponent;
  }
  EXPECT_EQ(cut_anywhere({1e200, 1e200}, 2), (Cuts{1}));
  EXPECT_EQ(cut_anywhere({0, 0}, 2), (Cuts{1}));
}

TEST(OptimalCuts, AreTheBestOfAllPartitions) {
  int refused = 0, solved = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<double> costs(1 + random() % 11);
    std::vector<char> legal(costs.size() + 1);
    // Few distinct costs make many ties; some costs are 0.
    const unsigned most = random() % 3 == 0 ? 3 : 40;
    for (double& cost : costs) cost = random() % most;
    const unsigned rarity = 1 + random() % 3;
    for (char& flag : legal) flag = random() % (rarity + 1) != 0;
    const int stages = 1 + static_cast<int>(random() % 6);
    const std::optional<Cuts> expected = brute_force(costs, legal, stages);
    if (expected) {
      EXPECT_EQ(optimal_cuts(costs, legal, stages), *expected);
      ++solved;
    } else {
      EXPECT_NE(refusal(costs, legal, stages), "accepted");
      ++refused;
    }
  }
  EXPECT_GT(solved, 800);
  EXPECT_GT(refused, 100);
}

/// Whether `stages` parts of at most `limit` hold all: filled in turn, each as far as possible.
bool fits(const std::vector<double>& costs, const std::vector<char>& legal, int stages, double limit) {
  double part = 0, since_legal = 0;
  int used = 1;
  for (size_t p = 0; p < costs.size(); ++p) {
    if (legal[p]) since_legal = 0;
    part += costs[p];
    since_legal += costs[p];
    if (part <= limit) continue;
    if (since_legal > limit) return false;
    part = since_legal;
    if (++used > stages) return false;
  }
  return true;
}

TEST(OptimalCuts, NoLowerMaximumHoldsALongSequence) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<double> costs(10000);
    std::vector<char> legal(costs.size() + 1);
    for (double& cost : costs) cost = random() % 1000;
    for (char& flag : legal) flag = random() % 4 == 0;
    const int stages = 2 + 2 * static_cast<int>(seed);
    const Cuts cuts = optimal_cuts(costs, legal, stages);
    ASSERT_EQ(static_cast<int>(cuts.size()), stages - 1);
    for (int32_t p : cuts) EXPECT_TRUE(legal[p]) << p;
    const std::vector<double> parts = parts_of(costs, cuts);
    const double maximum = *std::max_element(parts.begin(), parts.end());
    EXPECT_TRUE(fits(costs, legal, stages, maximum));
    EXPECT_FALSE(fits(costs, legal, stages, maximum - 1));
  }
}

TEST(OptimalCuts, RefusesWhatCannotBe) {
  EXPECT_EQ(refusal({1, 1, 1, 1}, {1, 1, 0, 1, 1}, 4),
            "split: 4 stages asked for, but the places where a stage may begin allow 1 to 3");
  EXPECT_EQ(refusal({1, 1}, {1, 1, 1}, 0),
            "split: 0 stages asked for, but the places where a stage may begin allow 1 to 2");
  EXPECT_EQ(refusal({1, -2}, {1, 1, 1}, 2),
            "split: the cost of node 1 is -2.000000; costs are finite and not negative");
  for (double cost : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_NE(refusal({cost}, {1, 1}, 1), "accepted");
}

}  // namespace
}  // namespace plumbline::split

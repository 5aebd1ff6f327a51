#include "runtime/partition/parity/knapsack_solvers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "runtime/error.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/knapsack_solvers.h"
#include "runtime/partition/testing/golden_files.h"

namespace plumbline::partition {
namespace {

// --- the cases of PyTorch's test/functorch/test_ac_knapsack.py -------------------------------------------------------

struct Case {
  const char* name;
  KnapsackProblem problem;
  KnapsackChoice expected;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

const Case kCases[] = {
    {"0 several ways to fill", {{2, 3, 2, 4, 1}, {1, 2, 1, 3, 2}, 5}, {5, {3, 4}}},
    {"1 all fit", {{1, 1, 1}, {1, 2, 3}, 3}, {6, {0, 1, 2}}},
    {"2 none fits", {{10, 20, 30}, {1, 2, 3}, 5}, {0, {}}},
    {"3 only the least fits", {{1, 2, 3}, {10, 20, 30}, 1}, {10, {0}}},
    {"4 equal items", {{1, 1, 1}, {2, 2, 2}, 2}, {4, {0, 1}}},
    {"5 one weighs nothing", {{0, 2, 3}, {5, 2, 3}, 5}, {10, {0, 1, 2}}},
    {"6 one is worth nothing", {{1, 2, 3}, {0, 2, 3}, 3}, {3, {2}}},
    {"7 large numbers", {{100, 200, 300}, {1000, 2000, 3000}, 500}, {5000, {1, 2}}},
    {"8 fractions", {{0.5, 1.5, 2.0}, {1, 2, 3}, 2}, {3, {0, 1}}},
    {"9 no items", {{}, {}, 10}, {0, {}}},
    {"10 no capacity", {{1, 2, 3}, {1, 2, 3}, 0}, {0, {}}},
    {"11 weightless items without capacity", {{0, 0, 0}, {1, 2, 3}, 0}, {6, {0, 1, 2}}},
    {"12 worthless items", {{1, 2, 3}, {0, 0, 0}, 6}, {0, {}}},
};

KnapsackChoice in_bytes(const KnapsackProblem& problem) {
  std::vector<int64_t> bytes;
  for (double weight : problem.weights) bytes.push_back(std::llround(weight * 1000));
  return knapsack_in_bytes(bytes, problem.values, std::llround(problem.capacity * 1000));
}

class KnapsackCase : public ::testing::TestWithParam<Case> {};

TEST_P(KnapsackCase, test_dp_knapsack) { EXPECT_EQ(knapsack_dp(GetParam().problem), GetParam().expected); }

// Of several best choices the other solvers may take a different one; in PyTorch's cases that happens only for equal
// items (4) and where the parts of a sum are interchangeable (8).
TEST_P(KnapsackCase, test_dp_knapsack_sliding_hirschberg) {
  const KnapsackChoice choice = knapsack_hirschberg(GetParam().problem);
  EXPECT_EQ(choice.value, GetParam().expected.value);
  EXPECT_EQ(choice.kept.size() + items_left(choice, GetParam().problem.weights.size()).size(),
            GetParam().problem.weights.size());
}

TEST_P(KnapsackCase, ExactInBytes) {
  const KnapsackChoice choice = in_bytes(GetParam().problem);
  EXPECT_EQ(choice.value, GetParam().expected.value);
}

INSTANTIATE_TEST_SUITE_P(PyTorch, KnapsackCase, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return "case_" + std::to_string(info.index); });

// Every knapsack that PyTorch solved during the recorded runs.
TEST(Knapsack, RecordedByPyTorch) {
  int records = 0;
  for (const JointGraphFile& file : golden_files()) {
    for (const auto& [key, run] : file.runs) {
      if (!run.knapsack) continue;
      ++records;
      const JointGraphFile::Knapsack& recorded = *run.knapsack;
      const KnapsackProblem problem{recorded.memory, recorded.runtime, recorded.capacity};
      const KnapsackChoice choice = knapsack_dp(problem);
      EXPECT_EQ(choice, (KnapsackChoice{recorded.value, recorded.save})) << file.model << " " << key;
      std::vector<int> recomputed = recorded.recompute;
      std::sort(recomputed.begin(), recomputed.end());
      EXPECT_EQ(items_left(choice, problem.weights.size()), recomputed) << file.model << " " << key;
    }
  }
  EXPECT_GE(records, 92);
}

// --- against exhaustive search ---------------------------------------------------------------------------------------

struct Instance {
  KnapsackProblem problem;
  std::vector<int64_t> ticks;  // by item: ten-thousandths
  int64_t capacity = 0;        // likewise
};

// Weights are whole ten-thousandths, as the nearest doubles; a third of the instances has many equal weights.
Instance random_instance(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto upto = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n + 1)); };
  Instance instance;
  const int64_t items = upto(10);
  const int64_t heaviest = seed % 3 == 0 ? 3 : 1 + upto(400);
  int64_t sum = 0;
  for (int64_t i = 0; i < items; ++i) {
    instance.ticks.push_back(upto(heaviest));
    sum += instance.ticks.back();
    instance.problem.weights.push_back(static_cast<double>(instance.ticks.back()) / 10000);
    instance.problem.values.push_back(static_cast<double>(upto(seed % 2 ? 5 : 1000)));
  }
  instance.capacity = upto(sum + 2);
  instance.problem.capacity = static_cast<double>(instance.capacity) / 10000;
  return instance;
}

struct Sums {
  int64_t ticks = 0;
  double value = 0;
};

Sums sums_of(const Instance& instance, const std::vector<int>& items) {
  Sums sums;
  for (int i : items) {
    sums.ticks += instance.ticks[i];
    sums.value += instance.problem.values[i];
  }
  return sums;
}

double best_value(const Instance& instance, int64_t capacity) {
  const size_t items = instance.ticks.size();
  double best = 0;
  for (uint32_t subset = 0; subset < 1u << items; ++subset) {
    int64_t ticks = 0;
    double value = 0;
    for (size_t i = 0; i < items; ++i)
      if (subset >> i & 1) {
        ticks += instance.ticks[i];
        value += instance.problem.values[i];
      }
    if (ticks <= capacity) best = std::max(best, value);
  }
  return best;
}

void expect_well_formed(const Instance& instance, const KnapsackChoice& choice, uint64_t seed) {
  EXPECT_TRUE(std::is_sorted(choice.kept.begin(), choice.kept.end())) << "seed " << seed;
  EXPECT_EQ(std::adjacent_find(choice.kept.begin(), choice.kept.end()), choice.kept.end()) << "seed " << seed;
  const Sums sums = sums_of(instance, choice.kept);
  EXPECT_LE(sums.ticks, instance.capacity) << "seed " << seed;
  EXPECT_EQ(sums.value, choice.value) << "seed " << seed;
}

constexpr uint64_t kInstances = 1000;

/// A solver and how to call it.
struct OptimalSolver {
  const char* name;
  KnapsackChoice (*solve)(const Instance&);
};

void PrintTo(const OptimalSolver& solver, std::ostream* os) { *os << solver.name; }

class OptimalKnapsack : public ::testing::TestWithParam<OptimalSolver> {};

TEST_P(OptimalKnapsack, IsOptimalAndWithinCapacity) {
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    const Instance instance = random_instance(seed);
    const KnapsackChoice choice = GetParam().solve(instance);
    expect_well_formed(instance, choice, seed);
    ASSERT_EQ(choice.value, best_value(instance, instance.capacity)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    KnapsackProperty, OptimalKnapsack,
    ::testing::Values(OptimalSolver{"Dp", [](const Instance& i) { return knapsack_dp(i.problem); }},
                      OptimalSolver{"Hirschberg", [](const Instance& i) { return knapsack_hirschberg(i.problem); }},
                      OptimalSolver{
                          "InBytes",
                          [](const Instance& i) { return knapsack_in_bytes(i.ticks, i.problem.values, i.capacity); }}),
    [](const auto& info) { return info.param.name; });

TEST(KnapsackProperty, GreedyIsWithinCapacityAndLeavesNothingThatFits) {
  int optimal = 0;
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    Instance instance = random_instance(seed);
    // Whole numbers, so that whether items fit does not depend on rounding a sum of fractions.
    instance.problem.weights.assign(instance.ticks.begin(), instance.ticks.end());
    instance.problem.capacity = static_cast<double>(instance.capacity);
    const KnapsackChoice choice = knapsack_greedy(instance.problem);
    expect_well_formed(instance, choice, seed);
    const int64_t room = instance.capacity - sums_of(instance, choice.kept).ticks;
    for (int i : items_left(choice, instance.ticks.size())) ASSERT_GT(instance.ticks[i], room) << "seed " << seed;
    const double best = best_value(instance, instance.capacity);
    ASSERT_LE(choice.value, best) << "seed " << seed;
    // No item has more value per weight than one taken before it, so greedy or the most valuable item alone reaches
    // half of the best value.
    double most_valuable = 0;
    for (size_t i = 0; i < instance.ticks.size(); ++i)
      if (instance.ticks[i] <= instance.capacity) most_valuable = std::max(most_valuable, instance.problem.values[i]);
    ASSERT_GE(2 * std::max(choice.value, most_valuable), best) << "seed " << seed;
    optimal += choice.value == best;
  }
  EXPECT_GT(optimal, 500);
  EXPECT_LT(optimal, 1000);
}

TEST(KnapsackProperty, KneePointIsTheBestOfItsMemory) {
  int below = 0;
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    const Instance instance = random_instance(seed);
    const KnapsackChoice choice = knapsack_knee_point(instance.problem);
    expect_well_formed(instance, choice, seed);
    const int64_t used = sums_of(instance, choice.kept).ticks;
    ASSERT_EQ(choice.value, best_value(instance, used)) << "seed " << seed;
    below += choice.value < best_value(instance, instance.capacity);
  }
  EXPECT_GT(below, 300);
}

// The capacities tried begin at 0.001, which is more than the given one.
TEST(Knapsack, KneePointBelowAThousandthStaysWithinCapacity) {
  const KnapsackProblem problem{{0.0005, 0.0009}, {1, 5}, 0.0005};
  EXPECT_EQ(knapsack_knee_point(problem), (KnapsackChoice{1, {0}}));
}

TEST(KnapsackProperty, OneTableForManyCapacitiesAnswersAsOneTableEach) {
  for (uint64_t seed = 0; seed < kInstances; ++seed) {
    const Instance instance = random_instance(seed);
    const std::vector<double> capacities = capacities_between(0, instance.problem.capacity, 7);
    const std::vector<KnapsackChoice> choices = knapsack_dp(instance.problem, capacities);
    for (size_t k = 0; k < capacities.size(); ++k) {
      KnapsackProblem alone = instance.problem;
      alone.capacity = capacities[k];
      ASSERT_EQ(choices[k], knapsack_dp(alone)) << "seed " << seed << ", capacity " << capacities[k];
    }
  }
}

// --- effects of PyTorch's quantisation and float32 -------------------------------------------------------------------

// Half a ten-thousandth is rounded to even: 0.00005 weighs nothing, 0.00035 weighs four.
TEST(Knapsack, DpRoundsHalvesToEven) {
  EXPECT_EQ(knapsack_dp({{0.00005, 0.00005}, {1, 1}, 0}).kept, (std::vector<int>{0, 1}));
  EXPECT_EQ(knapsack_dp({{0.00035, 0.00035}, {1, 1}, 0.0007}).kept, (std::vector<int>{0}));
}

// 2^24 + 1 is not a float32: the second item adds nothing to the sum, and PyTorch recomputes it.
TEST(Knapsack, DpSumsInFloat32) {
  const KnapsackProblem problem{{0.1, 0.1}, {16777216, 1}, 1};
  EXPECT_EQ(knapsack_dp(problem).kept, (std::vector<int>{0}));
  EXPECT_EQ(knapsack_hirschberg(problem).kept, (std::vector<int>{0, 1}));
}

// Reading the choice back from the table drops the last of equal items first.
TEST(Knapsack, DpKeepsTheEarlierOfEqualItems) {
  EXPECT_EQ(knapsack_dp({{0.3, 0.3, 0.3}, {7, 7, 7}, 0.6}).kept, (std::vector<int>{0, 1}));
}

TEST(Knapsack, GreedyTakesWeightlessItemsFirst) {
  EXPECT_EQ(knapsack_greedy({{0, 1, 0}, {0, 9, 5}, 0.5}), (KnapsackChoice{5, {0, 2}}));
}

// PyTorch's rounding admits an excessive sum: 20000 items of 0.000049 weigh nothing in ten-thousandths.
TEST(Knapsack, InBytesNeverExceedsTheCapacityWhereRoundingDoes) {
  const std::vector<int64_t> bytes(20000, 49);
  const std::vector<double> values(bytes.size(), 1);
  const std::vector<double> weights(bytes.size(), 49 / 1e6);
  EXPECT_EQ(knapsack_dp({weights, values, 0.5}).kept.size(), bytes.size());  // 0.98 of a capacity of 0.5
  EXPECT_EQ(knapsack_in_bytes(bytes, values, 500'000).kept.size(), 500'000u / 49);
}

// A single large item could require a row of a gigabyte.
TEST(Knapsack, InBytesCountsInUnitsThatItCanAfford) {
  EXPECT_EQ(bytes_per_unit(std::vector<int64_t>{512, 1024, 256}, 1 << 20), 256);
  for (const size_t items : {1, 3, 40, 5000})
    for (const int64_t capacity : {int64_t{1} << 22, int64_t{1} << 27, (int64_t{1} << 50) + 1}) {
      std::vector<int64_t> bytes(items, 4);
      const int64_t unit = bytes_per_unit(bytes, capacity);
      EXPECT_LE(capacity / unit, int64_t{1} << 22) << items << " items, " << capacity;
      EXPECT_LE(capacity / unit * static_cast<int64_t>(items), int64_t{1} << 27) << items << " items, " << capacity;
    }
  const std::vector<int64_t> odd{(int64_t{1} << 40) + 1, (int64_t{1} << 40) - 1};
  EXPECT_EQ(knapsack_in_bytes(odd, std::vector<double>{1, 2}, int64_t{1} << 40), (KnapsackChoice{2, {1}}));
  EXPECT_EQ(knapsack_in_bytes(odd, std::vector<double>{1, 2}, int64_t{1} << 41), (KnapsackChoice{3, {0, 1}}));
}

// More cells than are affordable: sizes are rounded up, and the rest is filled. Compared with the linear relaxation.
TEST(Knapsack, InBytesIsNearlyOptimalWhereATableWouldBeTooLarge) {
  std::mt19937_64 random(1);
  std::vector<int64_t> bytes;
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) {
    bytes.push_back(1'000'003 + static_cast<int64_t>(random() % 50'000'000));
    values.push_back(static_cast<double>(1 + random() % 1'000'000));
  }
  const int64_t capacity = std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) / 3;
  const KnapsackChoice choice = knapsack_in_bytes(bytes, values, capacity);
  int64_t kept = 0;
  for (int i : choice.kept) kept += bytes[i];
  EXPECT_LE(kept, capacity);

  std::vector<int> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return values[a] * static_cast<double>(bytes[b]) > values[b] * static_cast<double>(bytes[a]);
  });
  double bound = 0, room = static_cast<double>(capacity);
  for (int i : order) {
    const double share = std::min(1.0, room / static_cast<double>(bytes[i]));
    bound += share * values[i];
    room -= share * static_cast<double>(bytes[i]);
  }
  EXPECT_LE(choice.value, bound);
  EXPECT_GE(choice.value, 0.995 * bound);
}

TEST(Knapsack, NoCapacityMayBeNegative) {
  const KnapsackProblem problem{{0.5, 0.25}, {1, 2}, 1};
  const std::vector<double> capacities{1, -1};
  EXPECT_DEATH(knapsack_dp(problem, capacities), "a knapsack's capacity is not negative");
}

TEST(Knapsack, ItemsThatDoNotExistOrStandTwiceAreRefused) {
  EXPECT_EQ(kept_items({.value = 0, .kept = {2, 0}}, 3), (std::vector<char>{1, 0, 1}));
  EXPECT_THROW(kept_items({.value = 0, .kept = {3}}, 3), InputError);
  EXPECT_THROW(kept_items({.value = 0, .kept = {-1}}, 3), InputError);
  EXPECT_THROW(kept_items({.value = 0, .kept = {1, 1}}, 3), InputError);
}

// --- the knee --------------------------------------------------------------------------------------------------------

TEST(Knapsack, KneePointIsTheNearestAndTheFirstOfThose) {
  const std::vector<KnapsackShares> shares{{0, 1}, {0.2, 0.3}, {0.3, 0.2}, {1, 0}};
  EXPECT_EQ(knee_point(shares), 1);
  EXPECT_FALSE(knee_point(std::vector<KnapsackShares>{{0.5, 1}, {0.5, 0}}).has_value());
  EXPECT_FALSE(knee_point(std::vector<KnapsackShares>{{0, 0.5}, {1, 0.5}}).has_value());
  EXPECT_FALSE(knee_point({}).has_value());
}

}  // namespace
}  // namespace plumbline::partition

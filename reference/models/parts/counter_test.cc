#include "reference/models/parts/counter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace plumbline::models {
namespace {

// Published outputs of splitmix64.c seeded with 1234567.
TEST(Counter, SplitMix64GivesThePublishedNumbers) {
  EXPECT_EQ(splitmix64(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(splitmix64(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(splitmix64(1234567, 2), 9817491932198370423u);
  EXPECT_EQ(splitmix64(1234567, 3), 4593380528125082431u);
  EXPECT_EQ(splitmix64(1234567, 4), 16408922859458223821u);
}

TEST(Counter, StreamsOfSeedsAndNamesDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const char* name : {"layers.0.weight", "layers.1.weight", "layers.0.bias", "x", ""})
      for (uint64_t i = 0; i < 20; ++i) seen.insert(Counter(seed, name).bits(i));
  EXPECT_EQ(seen.size(), 20u * 5u * 20u);
}

TEST(Counter, UnitCoversTheIntervalEvenly) {
  const Counter counter(3, "unit");
  int histogram[10] = {};
  for (uint64_t i = 0; i < 10000; ++i) {
    const double u = counter.unit(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++histogram[static_cast<int>(u * 10)];
  }
  for (const int count : histogram) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

// conformance/python/recorder_test.py has the same table: Python computes the same numbers from (seed, name, index).
TEST(Counter, PythonHasTheSameNumbers) {
  struct Row {
    uint64_t seed;
    const char* name;
    uint64_t index, bits;
    double unit;
    int64_t below_50;
  };
  for (const Row& row : {Row{0, "", 0, 0x5b21f68ffa77f14cu, 0.35598698630425907, 4},
                         Row{1, "tokens", 0, 0x483c8ebf28e10ad4u, 0.2821740357111403, 42},
                         Row{1, "tokens", 63, 0x36ff620cb9e98850u, 0.2148343354291794, 18},
                         Row{7, "layers.0.qkv.weight", 12345, 0x2996b1f2af18b4cbu, 0.1624556748857653, 7},
                         Row{~uint64_t{0},
                             "gr\xc3\xb6\xc3\x9f"
                             "e",
                             2, 0xc1482f453cb91993u, 0.7550077003513461, 43}}) {
    const Counter counter(row.seed, row.name);
    EXPECT_EQ(counter.bits(row.index), row.bits) << row.name;
    EXPECT_EQ(counter.unit(row.index), row.unit) << row.name;
    EXPECT_EQ(counter.below(row.index, 50), row.below_50) << row.name;
  }
}

TEST(Counter, PermutationsAreComplete) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<int64_t> order = Counter(seed, "order").permutation(9);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i) << "seed " << seed;
  }
  EXPECT_TRUE(Counter(0, "order").permutation(0).empty());
}

TEST(Counter, PermutationsPutEveryElementEverywhere) {
  int where[4][4] = {};
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const std::vector<int64_t> order = Counter(seed, "order").permutation(4);
    for (size_t i = 0; i < 4; ++i) ++where[i][order[i]];
  }
  for (const auto& row : where)
    for (const int count : row) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace plumbline::models

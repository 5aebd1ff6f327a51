#include "reference/models/counter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace plumbline {
namespace {

// Published outputs of splitmix64.c seeded with 1234567, and test vectors of the FNV authors.
TEST(Counter, SplitMix64GivesThePublishedNumbers) {
  EXPECT_EQ(splitmix64(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(splitmix64(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(splitmix64(1234567, 2), 9817491932198370423u);
  EXPECT_EQ(splitmix64(1234567, 3), 4593380528125082431u);
  EXPECT_EQ(splitmix64(1234567, 4), 16408922859458223821u);
}

TEST(Counter, HashGivesThePublishedNumbers) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8u);
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
}  // namespace plumbline

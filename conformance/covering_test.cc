// Covering arrays against brute force: all possible rows say which pairs there are, and the built ones must hold them.
#include "conformance/covering.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

namespace plumbline {
namespace {

using Pairs = std::set<std::tuple<size_t, int, size_t, int>>;

void add_pairs(const CoveringRow& row, Pairs& pairs) {
  for (size_t a = 0; a < row.size(); ++a)
    for (size_t b = a + 1; b < row.size(); ++b) pairs.insert({a, row[a], b, row[b]});
}

/// Counts through all rows as an odometer does.
std::vector<CoveringRow> all_rows(const std::vector<int>& sizes) {
  std::vector<CoveringRow> rows;
  CoveringRow row(sizes.size(), 0);
  while (true) {
    rows.push_back(row);
    size_t wheel = 0;
    while (wheel < sizes.size() && ++row[wheel] == sizes[wheel]) row[wheel++] = 0;
    if (wheel == sizes.size()) return rows;
  }
}

/// Checks the built rows; returns how many more there are than pairs of the first two factors.
size_t check(const std::vector<int>& sizes, const std::set<CoveringRow>& impossible) {
  const std::vector<CoveringRow> rows =
      covering_rows(sizes, [&](const CoveringRow& row) { return !impossible.contains(row); });
  Pairs wanted, covered;
  for (const CoveringRow& row : all_rows(sizes))
    if (!impossible.contains(row)) add_pairs(row, wanted);
  for (const CoveringRow& row : rows) {
    EXPECT_FALSE(impossible.contains(row));
    add_pairs(row, covered);
  }
  EXPECT_EQ(covered, wanted);
  EXPECT_EQ(std::set<CoveringRow>(rows.begin(), rows.end()).size(), rows.size()) << "a row twice";
  size_t bound = 0;
  for (const auto& [a, x, b, y] : wanted) bound += a == 0 && b == 1;
  EXPECT_GE(rows.size(), bound);
  return rows.size() - bound;
}

TEST(Covering, AsManyRowsAsPairsOfTheFirstTwoWhereAllIsPossible) {
  EXPECT_EQ(check({38, 19, 3, 2}, {}), 0u);
  EXPECT_EQ(check({7, 6, 3, 2}, {}), 0u);
  EXPECT_EQ(check({5, 4}, {}), 0u);
  EXPECT_EQ(check({1, 1, 1, 1}, {}), 0u);
  // The first and the third make fifteen pairs, ten more than the first two.
  EXPECT_EQ(check({5, 1, 3, 2}, {}), 10u);
  EXPECT_TRUE(covering_rows({2, 2, 2}, [](const CoveringRow&) { return false; }).empty());
}

TEST(Covering, EveryPossiblePairIsThereHoweverMuchIsImpossible) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const std::vector<int> sizes = {6 + below(6), 4 + below(5), 3, 2};
    std::set<CoveringRow> impossible;
    const int percent = below(90);
    for (const CoveringRow& row : all_rows(sizes))
      if (below(100) < percent) impossible.insert(row);
    // As a case for which a schedule has no room: impossible on many ranks, whatever the rest.
    for (int a = 0; a < sizes[0]; ++a)
      for (int b = 0; b < sizes[1]; ++b)
        if (below(3) == 0)
          for (int last = 0; last < 2; ++last) impossible.insert({a, b, 2, last});
    EXPECT_LE(check(sizes, impossible), static_cast<size_t>(sizes[0] * sizes[1]) / 10 + 2);
  }
}

}  // namespace
}  // namespace plumbline

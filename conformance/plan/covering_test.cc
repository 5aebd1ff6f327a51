// Choices of rows against what all rows show, and against hand-made ones.
#include "conformance/plan/covering.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace plumbline::conformance {
namespace {

TEST(Covering, TakesTheRowThatShowsMostFirst) {
  EXPECT_EQ(covering_rows({{0}, {0, 1, 2}, {2, 3}}, {0, 0, 0}), (std::vector<int>{1, 2}));
  EXPECT_EQ(covering_rows({}, {}), std::vector<int>{});
  EXPECT_EQ(covering_rows({{}, {}}, {0, 0}), std::vector<int>{});
}

TEST(Covering, OfEqualRowsTakesTheGroupWithFewest) {
  // Rows 0 and 2 are needed and are of group 0; the last thing can come from group 0 (row 1) or from group 1 (row 3).
  EXPECT_EQ(covering_rows({{0, 1}, {4}, {2, 3}, {4}}, {0, 0, 0, 1}), (std::vector<int>{0, 2, 3}));
}

TEST(Covering, ShowsAllThatRandomRowsShowAndNoRowIsForNothing) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<int>> shows(1 + random() % 60);
    std::vector<int> groups;
    std::set<int> wanted;
    for (std::vector<int>& row : shows) {
      for (uint32_t i = random() % 6; i > 0; --i) row.push_back(static_cast<int>(random() % 40));
      wanted.insert(row.begin(), row.end());
      groups.push_back(static_cast<int>(random() % 4));
    }
    const std::vector<int> chosen = covering_rows(shows, groups);
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end())) << "seed " << seed;
    std::set<int> shown;
    for (const int row : chosen)
      shown.insert(shows[static_cast<size_t>(row)].begin(), shows[static_cast<size_t>(row)].end());
    EXPECT_EQ(shown, wanted) << "seed " << seed;
    EXPECT_LE(chosen.size(), wanted.size()) << "seed " << seed;
    EXPECT_EQ(chosen, covering_rows(shows, groups)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace plumbline::conformance

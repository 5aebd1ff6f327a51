#include "reference/models/parts/identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace plumbline::models {
namespace {

/// How many points of the grid {0, ..., values - 1}^2 are zeros of x (x - 1) ... (x - degree + 1), which has the most.
int64_t most_zeros(int degree, int64_t values) {
  int64_t zeros = 0;
  for (int64_t x = 0; x < values; ++x)
    for (int64_t y = 0; y < values; ++y) {
      int64_t product = 1;
      for (int i = 0; i < degree; ++i) product *= x - i;
      zeros += product == 0;
    }
  return zeros;
}

TEST(PassBound, IsReachedByAProductOfDistinctFactors) {
  for (const int64_t values : {5, 9, 13})
    for (int degree = 0; degree <= values; ++degree)
      EXPECT_DOUBLE_EQ(pass_bound(degree, values),
                       static_cast<double>(most_zeros(degree, values)) / static_cast<double>(values * values));
}

TEST(PassBound, IsNotExceededByRandomPolynomials) {
  constexpr int kValues = 7, kDegree = 4;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    struct Monomial {
      int64_t factor;
      int of_x, of_y;
    };
    std::vector<Monomial> sum;
    for (int of_x = 0; of_x <= kDegree; ++of_x)
      for (int of_y = 0; of_x + of_y <= kDegree; ++of_y)
        sum.push_back({static_cast<int64_t>(random() % 3) - 1, of_x, of_y});
    if (std::ranges::all_of(sum, [](const Monomial& m) { return m.factor == 0; })) continue;
    int zeros = 0;
    for (int64_t x = 0; x < kValues; ++x)
      for (int64_t y = 0; y < kValues; ++y) {
        int64_t value = 0;
        for (const Monomial& m : sum) {
          int64_t product = m.factor;
          for (int i = 0; i < m.of_x; ++i) product *= x;
          for (int i = 0; i < m.of_y; ++i) product *= y;
          value += product;
        }
        zeros += value == 0;
      }
    EXPECT_LE(zeros, pass_bound(kDegree, kValues) * kValues * kValues) << "seed " << seed;
  }
}

TEST(PassBound, DrawsMultiply) {
  EXPECT_DOUBLE_EQ(pass_bound(1, 4, 3), 1.0 / 64);
  EXPECT_DOUBLE_EQ(pass_bound(9, 4, 3), 1);  // says nothing
}

}  // namespace
}  // namespace plumbline::models

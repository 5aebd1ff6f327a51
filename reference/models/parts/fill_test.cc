#include "reference/models/parts/fill.h"

#include <ATen/Context.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/max.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/error.h"

namespace plumbline::models {
namespace {

std::vector<double> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

TEST(Fill, SameSeedAndNameGiveTheSameBytesWhateverTheStrides) {
  const at::Tensor plain = at::empty({6, 4}, at::kFloat), turned = at::empty({4, 6}, at::kFloat).t();
  fill_uniform(plain, 7, "w", -1, 1);
  fill_uniform(turned, 7, "w", -1, 1);
  EXPECT_TRUE(at::equal(plain, turned));
  const at::Tensor other_seed = at::empty({6, 4}, at::kFloat), other_name = at::empty({6, 4}, at::kFloat);
  fill_uniform(other_seed, 8, "w", -1, 1);
  fill_uniform(other_name, 7, "v", -1, 1);
  EXPECT_FALSE(at::equal(plain, other_seed));
  EXPECT_FALSE(at::equal(plain, other_name));
}

TEST(Fill, MoreRowsKeepTheFirstOnes) {
  const at::Tensor few = at::empty({3, 5}, at::kFloat), many = at::empty({9, 5}, at::kFloat);
  fill_normal(few, 1, "x", 0, 1);
  fill_normal(many, 1, "x", 0, 1);
  EXPECT_TRUE(at::equal(few, many.slice(0, 0, 3)));
}

TEST(Fill, NormalHasItsMoments) {
  const at::Tensor tensor = at::empty({20000}, at::kDouble);
  fill_normal(tensor, 5, "n", 2.0, 3.0);
  double mean = 0, square = 0, cube = 0;
  for (const double v : values(tensor)) mean += v / 20000;
  for (const double v : values(tensor)) {
    square += (v - mean) * (v - mean) / 20000;
    cube += std::pow((v - mean) / 3.0, 3) / 20000;
  }
  EXPECT_NEAR(mean, 2.0, 0.1);
  EXPECT_NEAR(std::sqrt(square), 3.0, 0.1);
  EXPECT_NEAR(cube, 0.0, 0.1);
}

TEST(Fill, IntegersReachBothEndsAndNothingElse) {
  const at::Tensor tensor = at::empty({1000}, at::kLong);
  fill_integers(tensor, 5, "i", -2, 3);
  const std::vector<double> drawn = values(tensor);
  EXPECT_EQ(std::set<double>(drawn.begin(), drawn.end()), (std::set<double>{-2, -1, 0, 1, 2, 3}));
  fill_signed_integers(tensor, 5, "i", 3);
  const std::vector<double> without_zero = values(tensor);
  EXPECT_EQ(std::set<double>(without_zero.begin(), without_zero.end()), (std::set<double>{-3, -2, -1, 1, 2, 3}));
}

TEST(Fill, SparseVectorHasThatManyEntries) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const at::Tensor vector = at::empty({8}, at::kFloat);
    fill_sparse_vector(vector, seed, "bias", 3, 2);
    double size = 0;
    for (const double v : values(vector)) size += std::abs(v);
    EXPECT_EQ(size, 6) << "seed " << seed;
  }
}

/// The sums of |entries| along dimension `dim`, as a set: a single number if all are equal.
std::set<double> sums(const at::Tensor& matrix, int64_t dim) {
  const std::vector<double> all = values(matrix.abs().sum(dim));
  return {all.begin(), all.end()};
}

TEST(Fill, SparseSignsHaveFanEntriesInEachRowAndColumn) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (int64_t fan = 1; fan <= 3; ++fan) {
      const at::Tensor square = at::empty({8, 8}, at::kFloat);
      fill_sparse_signs(square, seed, "w", fan);
      EXPECT_EQ(sums(square, 0), std::set<double>{static_cast<double>(fan)}) << "seed " << seed;
      EXPECT_EQ(sums(square, 1), std::set<double>{static_cast<double>(fan)}) << "seed " << seed;
      EXPECT_EQ(square.abs().max().item<double>(), 1);
      const at::Tensor wide = at::empty({8, 16}, at::kFloat);
      fill_sparse_signs(wide, seed, "w", fan);
      EXPECT_EQ(sums(wide, 0), std::set<double>{static_cast<double>(fan)}) << "seed " << seed;
      EXPECT_EQ(sums(wide, 1), std::set<double>{static_cast<double>(2 * fan)}) << "seed " << seed;
    }
}

TEST(Fill, SparseSignsRefuseOtherShapes) {
  EXPECT_THROW(fill_sparse_signs(at::empty({8, 12}), 0, "w", 2), InputError);
  EXPECT_THROW(fill_sparse_signs(at::empty({8, 8}), 0, "w", 9), InputError);
  EXPECT_THROW(fill_sparse_signs(at::empty({8}), 0, "w", 1), InputError);
}

TEST(Fill, TorchsGeneratorIsNotMoved) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor before = generator.get_state().clone();
  const at::Tensor tensor = at::empty({64}, at::kFloat);
  fill_normal(tensor, 1, "x", 0, 1);
  fill_uniform(tensor, 1, "x", 0, 1);
  EXPECT_TRUE(at::equal(before, generator.get_state()));
}

}  // namespace
}  // namespace plumbline::models

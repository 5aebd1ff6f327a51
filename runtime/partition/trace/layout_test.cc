#include "runtime/partition/trace/layout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace plumbline::partition {
namespace {

using Numbers = std::vector<int64_t>;

TEST(Layout, TheOrderOfMemory) {
  EXPECT_EQ(memory_order({2, 3, 4}, {12, 4, 1}), (Numbers{0, 1, 2}));
  EXPECT_EQ(memory_order({4, 2, 3}, {1, 12, 4}), (Numbers{1, 2, 0}));
  EXPECT_EQ(memory_order({2, 3, 4, 5}, {60, 1, 15, 3}), (Numbers{0, 2, 3, 1})) << "channels last";
  EXPECT_EQ(memory_order({3, 1, 2}, {1, 77, 3}), (Numbers{1, 2, 0})) << "one element has no say, and goes first";
  EXPECT_EQ(memory_order({}, {}), Numbers{});
  const at::Tensor x = at::rand({4, 6});
  EXPECT_TRUE(is_in_memory_order(x));
  EXPECT_FALSE(is_in_memory_order(x.t()));
  EXPECT_TRUE(is_in_memory_order(x.slice(1, 0, 6, 2))) << "gaps do not change it";
  EXPECT_TRUE(is_in_memory_order(x.narrow(0, 1, 1).t()));
  EXPECT_TRUE(is_in_memory_order(at::rand({})));
}

/// By addresses: the elements in the order of memory are those of the permuted tensor in the order of its indices.
TEST(Layout, PermutedTensorsComeBack) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Numbers sizes(std::uniform_int_distribution<size_t>(0, 5)(random)), order(sizes.size());
    for (int64_t& size : sizes) size = std::uniform_int_distribution<int64_t>(1, 4)(random);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    at::Tensor x = at::arange(c10::multiply_integers(sizes)).view(sizes).permute(order);
    const at::Tensor flat = x.permute(memory_order(x.sizes(), x.strides())).reshape(-1);
    ASSERT_TRUE(at::equal(flat, at::arange(x.numel())));
    ASSERT_TRUE(at::equal(x.permute(order).permute(inverse(order)), x));

    const at::Tensor other = at::rand(x.sizes());
    const at::Tensor made = laid_out(other, x.strides());
    ASSERT_TRUE(made.defined());
    ASSERT_TRUE(lies_so(made, x.strides()));
    ASSERT_TRUE(at::equal(made, other));
  }
}

TEST(Layout, WhatLeavesGapsOrSharesCannotBeLaidOut) {
  const at::Tensor x = at::rand({4, 3});
  EXPECT_FALSE(laid_out(x, {6, 2}).defined());
  EXPECT_FALSE(laid_out(x, {0, 1}).defined());
  EXPECT_FALSE(lies_so(x, {1, 4}));
  EXPECT_TRUE(lies_so(x.narrow(0, 0, 0), {1, 4})) << "nothing lies anywhere";
}

TEST(Layout, ACopyLiesAsItsOriginal) {
  const at::Tensor x = at::rand({4, 6});
  for (const at::Tensor& original : {x, x.t(), x.slice(1, 1, 6, 2), x.narrow(0, 2, 1).expand({3, 6}), x.narrow(0, 0, 0),
                                     x.select(0, 1).select(0, 1)}) {
    const at::Tensor wanted = original.detach().requires_grad_();
    const at::Tensor copy = copy_as_it_lies(wanted);
    EXPECT_EQ(copy.strides(), original.strides());
    EXPECT_TRUE(at::equal(copy, original));
    EXPECT_FALSE(copy.is_alias_of(original));
    EXPECT_TRUE(copy.is_leaf() && copy.requires_grad() && !copy.is_view());
  }
}

}  // namespace
}  // namespace plumbline::partition

// Wrong values made from right ones by a known rule; the rule must be found again.
#include "conformance/judge/likeness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "conformance/judge/testing/f32.h"

namespace plumbline::conformance {
namespace {

using testing::f32;

const Bounds no_bounds;

std::string likeness_of(const std::string& key, const TensorMap& expected, const HostTensor& actual,
                        CompareMode mode = CompareMode::Numeric, int microbatches = 4) {
  return likeness(reference::parse_result_key(key), {expected, {{key, actual}}, mode, no_bounds}, microbatches);
}

TEST(Factor, OfWholeNumbersIsFoundExactly) {
  const auto seed = std::random_device()();
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> number(-30, 30), term(1, 64);
  for (int round = 0; round < 300; ++round) {
    const int p = (round % 2 == 0 ? 1 : -1) * term(random), q = term(random);
    std::vector<float> expected(12), actual(12);
    for (size_t i = 0; i < 12; ++i) {
      expected[i] = static_cast<float>(q * number(random));
      actual[i] = expected[i] / static_cast<float>(q) * static_cast<float>(p);
    }
    expected[5] = static_cast<float>(q), actual[5] = static_cast<float>(p);
    const int common = std::gcd(p, q);
    const auto found = factor_between(f32({12}, expected), f32({12}, actual), CompareMode::Numeric);
    if (std::ranges::count_if(expected, [](float x) { return x != 0; }) < 4) continue;
    ASSERT_TRUE(found) << "seed " << seed << ": " << p << "/" << q;
    EXPECT_EQ(*found, (Factor{p / common, q / common})) << "seed " << seed;
    actual[5] += 1;
    EXPECT_EQ(factor_between(f32({12}, expected), f32({12}, actual), CompareMode::Numeric), std::nullopt)
        << "seed " << seed << ": " << p << "/" << q;
  }
}

// float32 arithmetic in a different order than the expected one: multiplied, then divided, each with a rounding.
TEST(Factor, OfRoundedNumbersIsFoundWithinAFewRoundings) {
  const auto seed = std::random_device()();
  std::mt19937 random(seed);
  std::normal_distribution<float> number;
  for (const auto& [p, q] : {std::pair{1, 3}, {5, 6}, {4, 1}, {1, 256}, {-1, 1}, {63, 64}, {7, 10}}) {
    std::vector<float> expected(32), actual(32);
    for (size_t i = 0; i < 32; ++i) {
      expected[i] = number(random);
      actual[i] = expected[i] * static_cast<float>(p) / static_cast<float>(q);
    }
    EXPECT_EQ(factor_between(f32({32}, expected), f32({32}, actual), CompareMode::Bitwise), (Factor{p, q}))
        << "seed " << seed;
    *std::ranges::max_element(actual, {}, [](float x) { return std::abs(x); }) *= 1.001f;
    EXPECT_EQ(factor_between(f32({32}, expected), f32({32}, actual), CompareMode::Bitwise), std::nullopt)
        << "seed " << seed << ": " << p << "/" << q;
  }
}

// 1.5 and 1.4 differ by less than these bounds: nothing can be said. With narrow bounds it can.
TEST(Factor, OfBoundedNumbersIsAsSharpAsTheBounds) {
  const HostTensor expected = make_f64({4}, {8, 4, -2, 6});
  const HostTensor actual = f32({4}, {12, 6, -3, 9});
  const HostTensor narrow = make_f64({4}, {1e-4, 1e-4, 1e-4, 1e-4}), wide = make_f64({4}, {4, 4, 4, 4});
  EXPECT_EQ(factor_between(expected, actual, CompareMode::Bounded, &narrow), (Factor{3, 2}));
  EXPECT_EQ(factor_between(expected, actual, CompareMode::Bounded, &wide), std::nullopt);
}

// A third of a whole number is rounded in exact cases too.
TEST(Factor, OfWholeNumbersMayBeRounded) {
  const HostTensor expected = f32({4}, {22, 5, -7, 9});
  const HostTensor third = f32({4}, {22.0f / 3, 5.0f / 3, -7.0f / 3, 3});
  EXPECT_EQ(factor_between(expected, third, CompareMode::Numeric), (Factor{1, 3}));
}

TEST(Factor, NeedsMoreThanAFewNumbersForAnyFraction) {
  EXPECT_EQ(factor_between(f32({}, {35}), f32({}, {21}), CompareMode::Numeric), std::nullopt);
  EXPECT_EQ(factor_between(f32({}, {36}), f32({}, {9}), CompareMode::Numeric), (Factor{1, 4}));
  EXPECT_EQ(factor_between(f32({}, {36}), f32({}, {27}), CompareMode::Numeric), (Factor{3, 4}));
  EXPECT_EQ(factor_between(f32({2}, {0, 0}), f32({2}, {0, 1}), CompareMode::Numeric), std::nullopt);
  EXPECT_EQ(factor_between(f32({2}, {0, 0}), f32({2}, {0, 0}), CompareMode::Numeric), Factor{});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(factor_between(f32({2}, {4, 2}), f32({2}, {nan, 4}), CompareMode::Numeric), std::nullopt);
  EXPECT_EQ(factor_between(f32({2}, {4, 2}), f32({2}, {8, nan}), CompareMode::Numeric), std::nullopt);
}

TEST(Factor, IsToldInPowersOfTheNumberOfMicrobatches) {
  EXPECT_EQ(factor_text({4, 1}, 4), "4 times what is expected (M = 4 micro-batches)");
  EXPECT_EQ(factor_text({16, 1}, 4), "16 times what is expected (M^2, M = 4 micro-batches)");
  EXPECT_EQ(factor_text({1, 4}, 4), "1/4 of what is expected (1/M, M = 4 micro-batches)");
  EXPECT_EQ(factor_text({1, 64}, 4), "1/64 of what is expected (1/M^3, M = 4 micro-batches)");
  EXPECT_EQ(factor_text({3, 4}, 4), "3/4 of what is expected");
  EXPECT_EQ(factor_text({8, 1}, 4), "8 times what is expected");
  EXPECT_EQ(factor_text({-1, 1}, 1), "-1 times what is expected");
}

TEST(Likeness, OfAnotherTensorNamesTheNearest) {
  const HostTensor a = f32({2}, {1, 2}), b = f32({2}, {3, 5}), zero = f32({2}, {0, 0});
  const TensorMap expected = {{"0/forward/1/0/v", a},
                              {"0/forward/1/1/v", b},
                              {"0/forward/1/1/w", a},
                              {"1/forward/1/0/v", b},
                              {"1/forward/1/1/v", f32({2}, {7, 9})}};
  EXPECT_EQ(likeness_of("0/forward/1/0/v", expected, b), "micro-batch 1's");
  EXPECT_EQ(likeness_of("0/forward/1/1/v", expected, a), "micro-batch 0's");
  EXPECT_EQ(likeness_of("1/forward/1/0/v", expected, a), "step 0's");
  EXPECT_EQ(likeness_of("1/forward/1/1/v", expected, a), "that of micro-batch 0 in step 0");
  EXPECT_EQ(likeness_of("0/forward/1/1/w", expected, b), "`v`'s");
  EXPECT_EQ(likeness_of("0/forward/1/0/v", expected, zero), "zero");
  EXPECT_EQ(likeness_of("0/forward/1/0/v", expected, f32({2}, {1, 3})), "");
  EXPECT_EQ(likeness_of("0/forward/1/0/v", expected, f32({1}, {1})), "") << "another shape";
}

TEST(Likeness, OfAMultipleTellsTheFactor) {
  const TensorMap expected = {{"0/loss/-/0/loss", f32({}, {12})}, {"0/loss/-/1/loss", f32({}, {5})}};
  EXPECT_EQ(likeness_of("0/loss/-/0/loss", expected, f32({}, {3})),
            "1/4 of what is expected (1/M, M = 4 micro-batches)");
}

TensorMap gradients() {
  return {{"0/grad/-/-/a", f32({4}, {1, 2, 3, 4})},
          {"0/grad/-/-/b", f32({4}, {5, 6, 0, 8})},
          {"0/grad/-/-/c", f32({4}, {9, -2, 3, 7})},
          {"0/grad/-/-/unused", f32({4}, {0, 0, 0, 0})}};
}

HostTensor times(const HostTensor& tensor, float factor) {
  std::vector<float> values;
  for (int64_t i = 0; i < element_count(tensor); ++i)
    values.push_back(static_cast<float>(element_as_double(tensor, i)) * factor);
  return f32(tensor.shape, values);
}

std::string pattern_of(const TensorMap& actual, CompareMode mode = CompareMode::Numeric) {
  return gradient_pattern({gradients(), actual, mode, no_bounds}, {{"a", {0}}, {"b", {0, 1}}, {"c", {2}}}, 4);
}

TEST(GradientPattern, OneFactorOfAll) {
  TensorMap actual = gradients();
  EXPECT_EQ(pattern_of(actual), "");
  for (auto& [key, tensor] : actual) tensor = times(tensor, 0.25f);
  EXPECT_EQ(pattern_of(actual), "every gradient is 1/4 of what is expected (1/M, M = 4 micro-batches)");
}

TEST(GradientPattern, FactorsByStage) {
  TensorMap actual = gradients();
  actual.at("0/grad/-/-/a") = times(actual.at("0/grad/-/-/a"), 1.0f / 16);
  actual.at("0/grad/-/-/b") = times(actual.at("0/grad/-/-/b"), 0.25f);
  EXPECT_EQ(
      pattern_of(actual),
      "the gradients are 1/16 of what is expected (1/M^2, M = 4 micro-batches) on stage 0, 1/4 of what is expected "
      "(1/M, M = 4 micro-batches) on stages 0, 1, right on stage 2");
  actual.at("0/grad/-/-/b") = f32({4}, {5, 6, 1, 8});
  EXPECT_EQ(
      pattern_of(actual),
      "the gradients are 1/16 of what is expected (1/M^2, M = 4 micro-batches) on stage 0, off by no single factor "
      "on stages 0, 1, right on stage 2");
}

TEST(GradientPattern, SaysThatNoFactorExplainsIt) {
  TensorMap actual = gradients();
  actual.at("0/grad/-/-/a") = f32({4}, {1, 2, 3, 5});
  EXPECT_EQ(pattern_of(actual),
            "the gradients are off by no single factor on stage 0, right on stages 0, 1, right on stage 2");
  for (const char* key : {"0/grad/-/-/b", "0/grad/-/-/c"}) actual.at(key) = actual.at("0/grad/-/-/a");
  EXPECT_EQ(pattern_of(actual), "no single factor explains the gradients");
  actual.erase("0/grad/-/-/a");
  EXPECT_EQ(pattern_of(actual), "");
  actual = gradients();
  actual.at("0/grad/-/-/a") = times(actual.at("0/grad/-/-/a"), 1.0f + 0x1p-22f);
  EXPECT_EQ(pattern_of(actual, CompareMode::Bitwise), "the gradients differ by a few roundings only");
}

TEST(StagesOfParameters, ComeFromTheirPartialGradients) {
  const HostTensor x = f32({1}, {1});
  const TensorMap expected = {{"0/partial/2/0/w", x},
                              {"0/partial/0/1/w", x},
                              {"1/partial/2/1/w", x},
                              {"0/partial/1/0/v", x},
                              {"0/grad/-/-/u", x}};
  EXPECT_EQ(stages_of_parameters(expected), (std::map<std::string, std::vector<int>>{{"v", {1}}, {"w", {0, 2}}}));
}

}  // namespace
}  // namespace plumbline::conformance

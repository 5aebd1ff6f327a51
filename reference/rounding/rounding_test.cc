#include "reference/rounding/rounding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>

#include "reference/models/parts/fill.h"
#include "reference/testing/error_ratio.h"
#include "runtime/clock.h"
#include "runtime/error.h"

namespace plumbline::reference {
namespace {

constexpr double kU = 0x1p-24;

at::Tensor vector_of(int64_t count, uint64_t seed, double mean, double deviation) {
  const at::Tensor out = at::empty({count}, at::kFloat);
  models::fill_normal(out, seed, "vector", mean, deviation);
  return out.to(at::kDouble);
}

/// Standard deviation over `samples` disturbed runs of `run`, whose undisturbed result is one number.
double scatter(const std::function<at::Tensor()>& run, int samples = 400) {
  const double value = run().item<double>();
  double squares = 0;
  for (int seed = 0; seed < samples; ++seed) {
    RoundingInterposer interposer({kU, kU, static_cast<uint64_t>(seed)});
    const capture::InterposerScope scope(interposer);
    const double deviation = run().item<double>() - value;
    squares += deviation * deviation;
  }
  return std::sqrt(squares / samples);
}

/// The effect of independent uniform errors u xi of each partial sum and product in one random order, term by term:
/// classic running error analysis, with variances in place of bounds.
double by_hand(const at::Tensor& a, const at::Tensor& b, bool rounded_products, int orders = 200) {
  const int64_t count = a.size(0);
  double total = 0;
  for (int order = 0; order < orders; ++order) {
    const auto permutation = models::Counter(order, "order").permutation(count);
    double sum = 0, variance = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double term = a[permutation[i]].item<double>() * b[permutation[i]].item<double>();
      sum += term;
      if (rounded_products) variance += term * term / 3;
      if (i > 0) variance += sum * sum / 3;
    }
    total += variance;
  }
  return kU * std::sqrt(total / orders + 0.0);
}

TEST(Rounding, DotProductScattersAsTheRunningErrorAnalysisSays) {
  for (const double mean : {0.0, 0.3, 2.0}) {
    const at::Tensor a = vector_of(60, 1, mean, 1), b = vector_of(60, 2, mean, 1);
    const double expected = by_hand(a, b, true);
    const double found = scatter([&] { return at::mm(a.unsqueeze(0), b.unsqueeze(1)); });
    // The stored result has one more rounding; 400 samples determine a deviation to 3.5 %.
    EXPECT_NEAR(found / expected, 1, 0.2) << "mean " << mean;
  }
}

TEST(Rounding, SumOfEqualTermsScattersAsItsPartialSums) {
  // Partial sums of n ones are 2 .. n: variance (u^2 / 3) sum k^2 = (u^2 / 3) (n (n+1) (2n+1) / 6 - 1), plus the store.
  const double n = 100;
  const double expected = kU * std::sqrt((n * (n + 1) * (2 * n + 1) / 6 - 1 + n * n) / 3);
  EXPECT_NEAR(scatter([] { return at::ones({100}, at::kDouble).sum(); }) / expected, 1, 0.15);
  EXPECT_NEAR(scatter([] { return at::ones({100}, at::kDouble).mean(); }) / (expected / n), 1, 0.15);
}

TEST(Rounding, ElementwiseOperationsRoundOnce) {
  const at::Tensor one = at::ones({}, at::kDouble), three = at::full({}, 3.0, at::kDouble);
  const double once = kU / std::sqrt(3.0);
  EXPECT_NEAR(scatter([&] { return one + three; }) / (4 * once), 1, 0.15);
  EXPECT_NEAR(scatter([&] { return three * three; }) / (9 * once), 1, 0.15);
  at::Tensor target;
  EXPECT_NEAR(scatter([&] {
                target = one.clone();
                return target.mul_(three);
              }) / (3 * once),
              1, 0.15);
  // 0.1 is not a float32, so its error counts; 0.25 is one.
  EXPECT_NEAR(scatter([&] { return three * 0.1; }) / (0.3 * once * std::sqrt(2.0)), 1, 0.2);
  EXPECT_NEAR(scatter([&] { return three * 0.25; }) / (0.75 * once), 1, 0.15);
}

/// Standard deviation of the mean over the elements of `run`'s result, relative to `value`, which each element has if
/// nothing is rounded. The elements' own errors nearly cancel in the mean; an error that they share does not.
double shared_scatter(const std::function<at::Tensor()>& run, double value, int samples = 200) {
  double squares = 0;
  for (int seed = 0; seed < samples; ++seed) {
    RoundingInterposer interposer({kU, kU, static_cast<uint64_t>(seed)});
    at::Tensor result;
    {
      const capture::InterposerScope scope(interposer);
      result = run();
    }
    const double deviation = result.mean().item<double>() / value - 1;
    squares += deviation * deviation;
  }
  return std::sqrt(squares / samples);
}

TEST(Rounding, AFactorOfAContractionHasOneErrorForTheWholeCall) {
  const at::Tensor column = at::ones({100, 1}, at::kDouble), row = at::ones({1, 100}, at::kDouble);
  const at::Tensor ones = at::ones({100, 100}, at::kDouble), zeros = at::zeros({100, 100}, at::kDouble);
  const auto batch = [](const at::Tensor& tensor) { return tensor.unsqueeze(0); };
  const double once = kU / std::sqrt(3.0);
  for (const double factor : {0.1, 0.25}) {
    const std::function<at::Tensor()> calls[] = {
        [&] { return at::addmm(zeros, column, row, 1, factor); },
        [&] { return at::addmm(ones, at::zeros_like(column), row, factor, 1); },
        [&] { return at::baddbmm(batch(zeros), batch(column), batch(row), 1, factor); },
        [&] { return at::baddbmm(batch(ones), batch(at::zeros_like(column)), batch(row), factor, 1); }};
    for (const auto& call : calls) {
      const double found = shared_scatter(call, factor);
      if (factor == 0.25) {  // a float32
        EXPECT_LT(found, 0.05 * kU);
        continue;
      }
      EXPECT_NEAR(found / once, 1, 0.2);
      // What float32 makes of 0.1.
      EXPECT_LT(std::abs(static_cast<double>(0.1F) / 0.1 - 1), 3 * found);
    }
  }
}

TEST(Rounding, MovesAndSelectionsAreExactAndInputsAreLeftAlone) {
  const at::Tensor a = vector_of(12, 3, 0, 1), before = a.clone();
  EXPECT_EQ(scatter([&] { return at::cat({a.view({3, 4}).t(), a.view({4, 3})}).relu().select(0, 1)[2].clone(); }, 5),
            0);
  RoundingInterposer interposer({1e-3, 1e-3, 1});
  const capture::InterposerScope scope(interposer);
  at::gelu(a);
  at::mm(a.view({3, 4}), a.view({4, 3}));
  at::layer_norm(a.view({3, 4}), {4});
  at::_unsafe_view(a, {3, 4});
  EXPECT_TRUE(at::equal(a, before));
  at::Tensor half = a.slice(0, 0, 6);
  half.add_(half);
  EXPECT_TRUE(half.is_alias_of(a));
  EXPECT_FALSE(at::equal(a.slice(0, 0, 6), before.slice(0, 0, 6) * 2));
  EXPECT_TRUE(at::equal(a.slice(0, 6), before.slice(0, 6)));
}

TEST(Rounding, WhatAKernelWritesStaysInItsMemory) {
  RoundingInterposer interposer({kU, kU, 1});
  const capture::InterposerScope scope(interposer);
  const at::Tensor a = at::full({4}, 2.0, at::kDouble), alias = a;
  a.addcmul_(at::full({4}, 3.0, at::kDouble), at::full({4}, 5.0, at::kDouble));
  EXPECT_LT((alias - 17).abs().max().item<double>(), 200 * kU);
  EXPECT_NE(alias[0].item<double>(), 17);
  const at::Tensor mean = at::zeros({1}, at::kDouble), variance = at::ones({1}, at::kDouble);
  at::batch_norm(at::full({4, 1}, 8.0, at::kDouble), {}, {}, mean, variance, true, 0.5, 1e-5, false);
  EXPECT_LT(std::abs(mean.item<double>() - 4), 100 * kU);
  EXPECT_NE(mean.item<double>(), 4) << "running statistics are rounded as well";
}

TEST(Rounding, SeesWhatCancels) {
  // (1 + x) - 1 in float32 has an absolute error of u for any x.
  const at::Tensor one = at::ones({64}, at::kDouble), x = at::full({64}, 1e-6, at::kDouble);
  const BoundedResults bounds =
      running_error([&] { return NamedResults{{"y", (one + x) - one}}; }, rounding_model(at::kFloat));
  const NamedResults real = {{"y", (one.to(at::kFloat) + x.to(at::kFloat)) - one.to(at::kFloat)}};
  EXPECT_GT((real.at("y").to(at::kDouble) - x).abs().max().item<double>(), 1e-9) << "the test shows nothing";
  EXPECT_LT(error_ratio(bounds, real).element, 1);
  EXPECT_GT(bounds.bound.at("y").min().item<double>(), kU);
  EXPECT_LT(bounds.bound.at("y").max().item<double>(), 40 * kU);
}

TEST(Rounding, AccumulationIntoGradIsSeen) {
  const auto run = [] {
    const at::Tensor weight = at::full({1}, 1.0, at::kDouble).requires_grad_();
    for (int i = 0; i < 2; ++i) weight.select(0, 0).backward();
    return NamedResults{{"grad", weight.grad()}};
  };
  const BoundedResults bounds = running_error(run, rounding_model(at::kFloat), 64);
  // The only rounding is that of 1 + 1, so the largest of 64 samples is nearly 2u.
  EXPECT_NEAR(bounds.bound.at("grad").item<double>() / (kRoundingSafety * 2 * kU), 1, 0.1);
}

TEST(Rounding, FloorsAndGates) {
  const at::Tensor moved = at::tensor({4.0, 0.0}, at::kDouble);
  const BoundedResults bounds = running_error(
      [&] { return NamedResults{{"moved", moved.clone()}, {"sum", moved + moved}}; }, rounding_model(at::kFloat));
  EXPECT_DOUBLE_EQ(bounds.bound.at("moved")[0].item<double>(), kRoundingSafety * kU * 4);
  EXPECT_EQ(bounds.bound.at("moved")[1].item<double>(), 0);
  EXPECT_GT(bounds.bound.at("sum")[1].item<double>(), 0) << "a share of the tensor's RMS deviation";
  EXPECT_EQ(error_ratio(bounds, bounds.value).element, 0);
  EXPECT_EQ(error_ratio(bounds, bounds.value).norm, 0);
  NamedResults wrong = bounds.value;
  wrong["moved"] = at::tensor({4.0, 1e-30}, at::kDouble);
  EXPECT_EQ(error_ratio(bounds, wrong).element_where, "moved");
  wrong["moved"] = at::tensor({4.0, std::nan("")}, at::kDouble);
  EXPECT_EQ(error_ratio(bounds, wrong).element, std::numeric_limits<double>::infinity());
  wrong.erase("moved");
  EXPECT_EQ(error_ratio(bounds, wrong).element, std::numeric_limits<double>::infinity());
}

TEST(Rounding, IsRepeatableAndRefusesWhatItCannotDo) {
  const at::Tensor a = vector_of(30, 4, 0, 1);
  const auto run = [&] { return NamedResults{{"y", at::gelu(a * a)}}; };
  const RoundingModel model = rounding_model(at::kFloat, 7);
  EXPECT_TRUE(at::equal(running_error(run, model).bound["y"], running_error(run, model).bound["y"]));
  EXPECT_FALSE(
      at::equal(running_error(run, model).bound["y"], running_error(run, rounding_model(at::kFloat, 8)).bound["y"]));
  EXPECT_THROW(rounding_model(at::kLong), InputError);
  int calls = 0;
  EXPECT_THROW(running_error([&] { return NamedResults{{std::to_string(calls++), a}}; }, model), InputError);
}

TEST(Rounding, SixteenSamplesOfSixtyThousandParametersAreCheap) {
  const at::Tensor weights = vector_of(4 * 124 * 124, 5, 0, 0.1).view({4, 124, 124}), x = vector_of(32 * 124, 6, 0, 1);
  const auto start = std::chrono::steady_clock::now();
  running_error(
      [&] {
        const at::Tensor parameters = weights.clone().requires_grad_();
        at::Tensor y = x.view({32, 124});
        for (int layer = 0; layer < 4; ++layer) y = at::gelu(at::linear(y, parameters[layer]));
        y.sum().backward();
        return NamedResults{{"grad", parameters.grad()}};
      },
      rounding_model(at::kFloat));
  // Printed, not asserted: a test must not fail on timing.
  std::cout << "61504 parameters, 16 samples: " << seconds_since(start) << " s\n";
}

}  // namespace
}  // namespace plumbline::reference

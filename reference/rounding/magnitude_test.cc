#include "reference/rounding/magnitude.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "reference/models/parts/fill.h"
#include "runtime/error.h"

namespace plumbline::reference {
namespace {

at::Tensor integers(at::IntArrayRef shape, uint64_t seed, const char* name, int64_t limit) {
  const at::Tensor out = at::empty(shape, at::kDouble);
  models::fill_integers(out, seed, name, -limit, limit);
  return out;
}

/// The magnitudes of `run`.
Magnitude measure(const std::function<void()>& run) {
  MagnitudeInterposer interposer;
  const capture::InterposerScope scope(interposer);
  run();
  return interposer.result();
}

TEST(Magnitude, FindsTheLargestSumAndWhereItIs) {
  const at::Tensor x = at::full({2, 3}, 5.0, at::kDouble), weight = at::full({4, 3}, 7.0, at::kDouble).requires_grad_();
  const Magnitude magnitude = measure([&] { at::relu(at::linear(x, weight)).sum().backward(); });
  EXPECT_EQ(magnitude.max_abs, 2 * 4 * 3 * 5 * 7);
  EXPECT_EQ(magnitude.op, "aten::sum");
  EXPECT_TRUE(magnitude.integral);
  EXPECT_EQ(magnitude.unproven, "");
  EXPECT_EQ(why_not_exact(magnitude, at::kHalf), "");
  EXPECT_NE(why_not_exact(magnitude, at::kBFloat16).find("aten::sum"), std::string::npos);
}

TEST(Magnitude, SeesAGradientThatAccumulates) {
  const at::Tensor weight = at::ones({2}, at::kDouble).requires_grad_();
  const Magnitude magnitude = measure([&] {
    for (int i = 0; i < 3; ++i) (weight * 100).select(0, 0).backward();
  });
  EXPECT_EQ(magnitude.max_abs, 300);
  EXPECT_EQ(magnitude.op, "aten::add_");
}

TEST(Magnitude, SeesFractions) {
  const at::Tensor x = at::full({4}, 3.0, at::kDouble);
  const auto run = [&] { x.div(8); };
  EXPECT_FALSE(measure(run).integral);
  EXPECT_EQ(measure(run).fraction, "aten::div");
  EXPECT_EQ(measure([&] { x.mean(); }).max_abs, 12) << "the sum that the mean divides";
}

TEST(Magnitude, RefusesWhatItsArgumentDoesNotCover) {
  const at::Tensor x = at::full({4}, 3.0, at::kDouble);
  const auto unproven = [](const std::function<void()>& run) { return measure(run).unproven; };
  EXPECT_NE(unproven([&] { x.exp(); }), "");
  EXPECT_NE(unproven([&] { x - x; }), "");
  const at::Tensor negative = at::full({4}, -2.0, at::kDouble);
  EXPECT_EQ(unproven([&] { x - negative; }), "");
  EXPECT_NE(unproven([&] { x + negative; }), "");
  EXPECT_NE(unproven([&] { at::mse_loss(x, x); }), "");
  EXPECT_NE(unproven([&] { at::add(x, x, -1); }), "");
  EXPECT_NE(unproven([&] { x * -2; }), "");
  EXPECT_NE(unproven([&] { x / 3; }), "");
  EXPECT_EQ(unproven([&] { at::clamp(x, -2, 2); }), "");
  EXPECT_NE(unproven([&] { at::clamp(x, -2, 1); }), "");
  EXPECT_NE(unproven([&] { at::clamp(x, -0.5, 0.5); }), "");
  EXPECT_EQ(unproven([&] { at::mse_loss(x, negative); }), "");
  const Magnitude infinite = measure([&] { at::full_like(x, INFINITY).clone(); });
  EXPECT_NE(why_not_exact(infinite, at::kFloat), "");
}

TEST(Magnitude, Limits) {
  EXPECT_EQ(exact_limit(at::kFloat), 16777216);
  EXPECT_EQ(exact_limit(at::kHalf), 2048);
  EXPECT_EQ(exact_limit(at::kBFloat16), 256);
  EXPECT_THROW(exact_limit(at::kInt), InputError);
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16}) {  // oracle: the formats themselves
    const double limit = exact_limit(type);
    EXPECT_EQ(at::full({}, limit, at::kDouble).to(type).to(at::kDouble).item<double>(), limit);
    EXPECT_NE(at::full({}, limit + 1, at::kDouble).to(type).to(at::kDouble).item<double>(), limit + 1);
  }
}

/// A small net with a skip, an embedding and a squared loss; if proven exact, results are bitwise equal for all orders.
std::vector<at::Tensor> train(const std::vector<at::Tensor>& data, at::ScalarType type, bool absolute, bool reversed) {
  const auto made = [&](int i) {
    const at::Tensor out = absolute ? data[i].abs() : data[i];
    return out.to(type, false, true).requires_grad_();
  };
  const at::Tensor table = made(0), w1 = made(1), w2 = made(2);
  const at::Tensor rows = at::arange(16, at::kLong) % 5;
  const at::Tensor target = data[absolute ? 4 : 3].to(type);
  at::Tensor loss_sum;
  for (int chunk = 0; chunk < 4; ++chunk) {
    const int begin = 4 * (reversed ? 3 - chunk : chunk);
    const at::Tensor x = at::embedding(table, rows.slice(0, begin, begin + 4));
    const at::Tensor y = x + at::linear(at::relu(at::linear(x, w1)), w2);
    const at::Tensor loss = at::mse_loss(y, target.slice(0, begin, begin + 4), at::Reduction::Sum);
    loss.backward();
    loss_sum = loss_sum.defined() ? loss_sum + loss.detach() : loss.detach();
  }
  return {table.grad(), w1.grad(), w2.grad(), loss_sum};
}

TEST(Magnitude, WhatIsProvenIsTheSameInEveryOrder) {
  int proven = 0, refused = 0;
  for (int seed = 0; seed < 40; ++seed) {
    const int64_t limit = 1 + seed % 8;
    const std::vector<at::Tensor> data = {integers({5, 6}, seed, "table", limit), integers({8, 6}, seed, "w1", limit),
                                          integers({6, 8}, seed, "w2", limit),
                                          integers({16, 6}, seed, "target", limit)};
    std::vector<at::Tensor> with_bound = data;
    with_bound.push_back(data[3].abs().neg());
    const Magnitude magnitude = measure([&] { train(with_bound, at::kDouble, true, false); });
    ASSERT_EQ(magnitude.unproven, "");
    if (why_not_exact(magnitude, at::kFloat) != "") {
      ++refused;
      continue;
    }
    ++proven;
    const auto exact = train(data, at::kDouble, false, false);
    for (const bool reversed : {false, true}) {
      const auto real = train(data, at::kFloat, false, reversed);
      for (size_t i = 0; i < exact.size(); ++i) {
        EXPECT_TRUE(at::equal(real[i].to(at::kDouble), exact[i])) << "seed " << seed << " tensor " << i;
        EXPECT_LE(exact[i].abs().max().item<double>(), magnitude.max_abs) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(proven, 10);
  EXPECT_GT(refused, 3) << "both sides of the limit";
}

}  // namespace
}  // namespace plumbline::reference

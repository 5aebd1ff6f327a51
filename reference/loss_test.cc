// The losses of cases against sums written out by hand.
#include "reference/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plumbline::reference {
namespace {

const std::vector<int64_t> kClasses = {2, kIgnoredTarget, 0, 3, 1, 2};

at::Tensor classes() { return at::tensor(kClasses).reshape({2, 3}); }

LossSpec entropy(Reduction reduction, bool ignores, bool weighted) {
  LossSpec spec;
  spec.kind = LossKind::CrossEntropy;
  spec.reduction = reduction;
  spec.ignores_targets = ignores;
  spec.class_weights = weighted;
  return spec;
}

/// The sum of the weighted terms, and the sum of the weights.
std::pair<double, double> by_hand(const at::Tensor& logits, const std::vector<double>& weight_of_class) {
  double loss = 0, weights = 0;
  const at::Tensor flat = logits.reshape({-1, 4}).to(at::kDouble);
  for (size_t i = 0; i < kClasses.size(); ++i) {
    if (kClasses[i] == kIgnoredTarget) continue;
    double sum = 0;
    for (int c = 0; c < 4; ++c) sum += std::exp(flat[i][c].item<double>());
    loss += weight_of_class[kClasses[i]] * (std::log(sum) - flat[i][kClasses[i]].item<double>());
    weights += weight_of_class[kClasses[i]];
  }
  return {loss, weights};
}

TEST(Loss, ClassWeightsAndIgnoredTargetsAreThoseOfTheFormula) {
  at::manual_seed(3);
  const at::Tensor logits = at::randn({2, 3, 4}, at::kDouble);
  for (const bool weighted : {false, true}) {
    const auto [sum, weights] =
        by_hand(logits, weighted ? std::vector<double>{1, 2, 0.5, 4} : std::vector<double>{1, 1, 1, 1});
    const double bound = 64 * 0x1p-53 * sum;  // 5 terms of some ten operations each
    const auto value = [&](Reduction reduction, double divisor) {
      return compute_loss(entropy(reduction, true, weighted), {logits}, classes(), divisor).item<double>();
    };
    EXPECT_NEAR(value(Reduction::Sum, 1), sum, bound);
    EXPECT_NEAR(value(Reduction::Mean, 1), sum / weights, bound);
    EXPECT_NEAR(value(Reduction::BatchMean, 8), sum / 8, bound);
    EXPECT_EQ(counted_targets(entropy(Reduction::Mean, true, weighted), classes()), weights);
  }
}

TEST(Loss, AddsAuxiliaryLossesAndDividesEverything) {
  LossSpec spec;
  const std::vector<at::Tensor> outputs = {at::full({2, 2}, 3.0), at::tensor(5.0), at::Tensor(), at::tensor(7.0)};
  EXPECT_EQ(compute_loss(spec, outputs, {}).item<float>(), 12);
  spec.auxiliary = AuxiliaryLosses::InPlace;
  EXPECT_EQ(compute_loss(spec, outputs, {}).item<float>(), 12);
  spec.auxiliary = AuxiliaryLosses::Added;
  EXPECT_EQ(compute_loss(spec, outputs, {}).item<float>(), 24);
  EXPECT_EQ(compute_loss(spec, outputs, {}, 4).item<float>(), 6);
}

TEST(Loss, SeveralTargetsAreEachComparedWithTheirOutput) {
  LossSpec spec{.kind = LossKind::Mse};
  const std::vector<at::Tensor> outputs = {at::full({2}, 3.0), at::full({3}, 5.0), at::tensor(7.0)};
  const Targets targets = {at::full({2}, 1.0), at::full({3}, 4.0)};
  EXPECT_EQ(compute_loss(spec, outputs, targets).item<float>(), 2 * 4 + 3 * 1);
  spec.auxiliary = AuxiliaryLosses::Added;
  EXPECT_EQ(compute_loss(spec, outputs, targets).item<float>(), 2 * 4 + 3 * 1 + 7);
  spec.reduction = Reduction::Mean;
  EXPECT_EQ(compute_loss(spec, outputs, targets).item<float>(), 4 + 1 + 7);
  EXPECT_EQ(counted_targets(spec, targets), 5);
}

TEST(Loss, ComparesEachOutputScaledAndShifted) {
  const LossSpec spec{.kind = LossKind::Mse, .parameters = true};
  const std::vector<at::Tensor> outputs = {at::full({2}, 3.0), at::full({3}, 5.0)};
  const Targets targets = {at::full({2}, 1.0), at::full({3}, 4.0)};
  const at::Tensor scale = at::full({1}, 2.0), shift = at::full({1}, -1.0), other = at::full({1}, 9.0);
  const std::vector<at::Tensor> found =
      loss_parameters(spec, {{"layers.7.bias", other}, {"loss.shift", shift}, {"loss.scale", scale}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(compute_loss(spec, outputs, targets, 1, found).item<float>(), 2 * 4 * 4 + 3 * 5 * 5);
  EXPECT_TRUE(loss_parameters(LossSpec{}, {{"loss.scale", scale}, {"loss.shift", shift}}).empty());
}

TEST(Loss, TheDivisorIsTheUsers) {
  Case c;
  c.microbatches = 4;
  c.loss.kind = LossKind::Mse;
  const at::Tensor target = at::zeros({6, 5});
  EXPECT_EQ(loss_divisor(c, target), 1);
  c.division = Division::Nobody;
  EXPECT_EQ(loss_divisor(c, target), 1);
  c.loss.reduction = Reduction::BatchMean;
  EXPECT_EQ(loss_divisor(c, target), 30);
  EXPECT_EQ(loss_divisor(c, {}), 1) << "an evaluation without a target";
  c.division = Division::User;
  EXPECT_EQ(loss_divisor(c, target), 120);
  c.loss = entropy(Reduction::BatchMean, true, true);
  c.division = Division::Engine;
  EXPECT_EQ(loss_divisor(c, classes()), 0.5 + 1 + 4 + 2 + 0.5);
}

}  // namespace
}  // namespace plumbline::reference

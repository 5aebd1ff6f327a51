// The results that run_case() records for a subject whose copies of a parameter are equal or differ.
#include "reference/oracle/case_run.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/error.h"

namespace plumbline::reference {
namespace {

/// Two stages of one rank, each with a copy of `w`, like a tied parameter under a V placement.
class TwoCopies : public CaseSubject {
 public:
  double gradient_norm(NormKind) const override { return 0; }
  TwoCopies(at::Tensor first, at::Tensor second) : first_(std::move(first)), second_(std::move(second)) {}
  void train(int, const models::Batch&) override {}
  void evaluate(int, const models::Batch&) override {}
  void zero_grad() override {}
  void set_trainable(const std::string&, bool) override {}
  std::vector<std::pair<std::string, at::Tensor>> parameters() const override {
    return {{"w", first_}, {"b", at::full({1}, 5.0)}, {"w", second_}};
  }
  std::vector<std::pair<std::string, at::Tensor>> buffers() const override { return {}; }

 private:
  at::Tensor first_, second_;
};

std::vector<std::string> recorded(TwoCopies subject) {
  Case c;
  c.id = "two-copies";
  c.model = "exact-mlp";
  c.steps = {StepKind::Train};
  Results results;
  run_case(c, 1, subject, results);
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : results) keys.push_back(key);
  return keys;
}

at::Tensor with_gradient(double value, double grad) {
  at::Tensor tensor = at::full({2}, value);
  tensor.mutable_grad() = at::full({2}, grad);
  return tensor;
}

TEST(CaseRun, EqualCopiesAreOneResult) {
  EXPECT_EQ(recorded({with_gradient(1, 2), with_gradient(1, 2)}),
            (std::vector<std::string>{"0/grad/-/-/w", "0/param/-/-/b", "0/param/-/-/w"}));
}

TEST(CaseRun, ACopyThatDiffersShows) {
  EXPECT_EQ(recorded({with_gradient(1, 2), with_gradient(1, 3)}),
            (std::vector<std::string>{"0/grad/-/-/w", "0/grad/-/-/w (a copy that differs)", "0/param/-/-/b",
                                      "0/param/-/-/w"}));
  EXPECT_EQ(recorded({with_gradient(1, 2), with_gradient(-1, 2)}),
            (std::vector<std::string>{"0/grad/-/-/w", "0/param/-/-/b", "0/param/-/-/w",
                                      "0/param/-/-/w (a copy that differs)"}));
}

TEST(CaseRun, ACopyWithoutAGradientShows) {
  const std::vector<std::string> expected = {"0/grad/-/-/w", "0/grad/-/-/w (missing in a copy)", "0/param/-/-/b",
                                             "0/param/-/-/w"};
  EXPECT_EQ(recorded({with_gradient(1, 2), at::full({2}, 1.0)}), expected);
  EXPECT_EQ(recorded({at::full({2}, 1.0), with_gradient(1, 2)}), expected);
}

/// Two parameters whose gradients each train step sets, and the norm that the case is told.
class TwoParameters : public CaseSubject {
 public:
  TwoParameters(double first, double second, double norm) : first_(first), second_(second), norm_(norm) {}
  void train(int, const models::Batch&) override {
    a.mutable_grad() = at::full({1}, first_);
    b.mutable_grad() = at::full({1}, second_);
  }
  void evaluate(int, const models::Batch&) override {}
  void zero_grad() override {}
  void set_trainable(const std::string&, bool) override {}
  std::vector<std::pair<std::string, at::Tensor>> parameters() const override { return {{"a", a}, {"b", b}}; }
  std::vector<std::pair<std::string, at::Tensor>> buffers() const override { return {}; }
  double gradient_norm(NormKind) const override { return norm_; }
  at::Tensor a = at::zeros({1}), b = at::zeros({1});

 private:
  double first_, second_, norm_;
};

/// Unscaled, then clipped, then updated; the expected numbers are worked out by hand.
TEST(CaseRun, AnOptimizerStepUnscalesThenClips) {
  Case c;
  c.model = "exact-mlp";
  c.steps = {StepKind::Train, StepKind::Optimizer, StepKind::Read};
  c.optimizer.learning_rate = 1;
  c.optimizer.loss_scale = 4;
  c.optimizer.clip_norm = 2;
  c.optimizer.clip_epsilon = 3;
  TwoParameters subject(12, -16, 5);  // 3 and -4 unscaled: the norm 5, the factor 2 / (5 + 3)
  Results results;
  run_case(c, 1, subject, results);
  EXPECT_EQ(subject.a.item<float>(), -0.75);
  EXPECT_EQ(subject.b.item<float>(), 1);
  EXPECT_EQ(results.at("1/grad-norm/-/-/norm").item<double>(), 5);
  EXPECT_EQ(results.at("2/grad/-/-/a").item<float>(), 0.75);
  EXPECT_FALSE(results.contains("0/grad/-/-/a")) << "of a train step with an optimizer";
}

TEST(CaseRun, NothingIsClippedBelowTheLimitAndNothingUpdatedAfterAnOverflow) {
  Case c;
  c.model = "exact-mlp";
  c.steps = {StepKind::Train, StepKind::Optimizer};
  c.optimizer.learning_rate = 1;
  c.optimizer.clip_norm = 9;
  c.optimizer.skip_nonfinite = true;
  for (const double norm : {5.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    TwoParameters subject(3, -4, norm);
    Results results;
    run_case(c, 1, subject, results);
    EXPECT_EQ(subject.a.item<float>(), std::isfinite(norm) ? -3 : 0);
    EXPECT_EQ(results.contains("1/grad-norm/-/-/norm"), std::isfinite(norm));
  }
}

/// Logs its calls.
class Journal : public CaseSubject {
 public:
  double gradient_norm(NormKind) const override { return 0; }
  void train(int step, const models::Batch& batch) override { note("train", step, batch); }
  void evaluate(int step, const models::Batch& batch) override { note("evaluate", step, batch); }
  void zero_grad() override { lines.emplace_back("zero_grad"); }
  void set_trainable(const std::string& pattern, bool trainable) override {
    lines.push_back((trainable ? "unfreeze " : "freeze ") + pattern);
  }
  std::vector<std::pair<std::string, at::Tensor>> parameters() const override { return {}; }
  std::vector<std::pair<std::string, at::Tensor>> buffers() const override { return {}; }
  std::vector<std::string> lines;
  std::vector<at::Tensor> targets;

 private:
  void note(const std::string& what, int step, const models::Batch& batch) {
    lines.push_back(what + " " + std::to_string(step) + " with " + std::to_string(batch.inputs[0].size(0)) + " rows" +
                    (batch.targets.defined() ? "" : ", no target"));
    targets.push_back(batch.targets);
  }
};

TEST(CaseRun, StepsSayTheirRowsTargetsAndNames) {
  using enum StepKind;
  Case c;
  c.model = "exact-mlp";
  c.steps = {{Freeze, "layers.0.*"}, {Train, 6}, {Eval, 5, false}, ZeroGrad, {Unfreeze, "*"}, Eval};
  Journal journal;
  Results results;
  run_case(c, 1, journal, results);
  EXPECT_EQ(journal.lines,
            (std::vector<std::string>{"freeze layers.0.*", "train 1 with 6 rows", "evaluate 2 with 5 rows, no target",
                                      "zero_grad", "unfreeze *", "evaluate 5 with 8 rows"}));
}

TEST(CaseRun, IgnoredTargetsLeaveSomeInEachRowAndDifferByRow) {
  Case c;
  c.model = "transformer-lm";
  c.loss = {LossKind::CrossEntropy, Reduction::Mean, true};
  Journal journal;
  Results results;
  run_case(c, 1, journal, results);
  const at::Tensor counted = journal.targets.at(0).ne(kIgnoredTarget).sum(1);
  EXPECT_TRUE(counted.ge(1).all().item<bool>());
  EXPECT_GT(counted.max().item<int64_t>(), counted.min().item<int64_t>());
  c.model = "mlp";
  EXPECT_THROW(run_case(c, 1, journal, results), InputError);
}

}  // namespace
}  // namespace plumbline::reference

// The results that run_case() records for a subject whose copies of a parameter are equal or differ.
#include "reference/oracle/case_run.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

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
                    (batch.target.defined() ? "" : ", no target"));
    targets.push_back(batch.target);
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

// What run_case() records of a subject whose copies of a parameter are, or are not, equal.
#include "reference/case_run.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <ranges>

namespace plumbline {
namespace {

/// Two stages of one rank with a copy each of `w`, as a tied parameter has under a V placement.
class TwoCopies : public CaseSubject {
 public:
  TwoCopies(at::Tensor first, at::Tensor second) : first_(std::move(first)), second_(std::move(second)) {}
  void train(int, const Batch&) override {}
  void evaluate(int, const Batch&) override {}
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

}  // namespace
}  // namespace plumbline

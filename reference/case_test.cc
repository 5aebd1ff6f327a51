#include "reference/case.h"

#include <gtest/gtest.h>

#include "runtime/error.h"

namespace plumbline {
namespace {

/// Every enumerator's text, and back.
template <class Enum, class Parse>
void expect_texts(Parse parse, const std::vector<std::pair<Enum, std::string>>& expected) {
  for (const auto& [value, text] : expected) {
    EXPECT_EQ(to_string(value), text);
    EXPECT_EQ(parse(text), value) << text;
  }
  try {
    parse("nonsense");
    FAIL();
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'nonsense'"), std::string::npos) << message;
    for (const auto& [value, text] : expected) EXPECT_NE(message.find(text), std::string::npos) << message;
  }
}

TEST(Case, EnumeratorsHaveTexts) {
  expect_texts<Truth>(parse_truth,
                      {{Truth::Exact, "exact"}, {Truth::SameOrder, "same-order"}, {Truth::Bounded, "bounded"}});
  expect_texts<LossKind>(parse_loss_kind, {{LossKind::Sum, "sum"},
                                           {LossKind::Mse, "mse"},
                                           {LossKind::CrossEntropy, "cross-entropy"},
                                           {LossKind::Output, "output"}});
  expect_texts<Reduction>(parse_reduction, {{Reduction::Sum, "sum"}, {Reduction::Mean, "mean"}});
  expect_texts<StepKind>(parse_step_kind, {{StepKind::Train, "train"},
                                           {StepKind::Eval, "eval"},
                                           {StepKind::ZeroGrad, "zero_grad"},
                                           {StepKind::Optimizer, "optimizer"}});
  expect_texts<Dtype>(parse_dtype, {{Dtype::F32, "f32"}, {Dtype::BF16, "bf16"}, {Dtype::F64, "f64"}});
}

}  // namespace
}  // namespace plumbline

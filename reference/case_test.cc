#include "reference/case.h"

#include <gtest/gtest.h>

namespace plumbline::reference {
namespace {

TEST(Case, KindsOfTruthHaveTexts) {
  EXPECT_EQ(to_string(Truth::Exact), "exact");
  EXPECT_EQ(to_string(Truth::SameOrder), "same-order");
  EXPECT_EQ(to_string(Truth::Bounded), "bounded");
}

TEST(Case, TheSmallestBatchIsThatOfAnyStep) {
  Case c;
  c.rows = 8;
  EXPECT_EQ(least_rows(c), 8);
  c.steps = {{StepKind::Train, 9}, {StepKind::Eval, 6}, StepKind::Optimizer};
  EXPECT_EQ(least_rows(c), 6);
  c.steps_before = {{StepKind::Train, 5}};
  EXPECT_EQ(least_rows(c), 5);
}

}  // namespace
}  // namespace plumbline::reference

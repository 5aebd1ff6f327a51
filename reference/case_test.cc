#include "reference/case.h"

#include <gtest/gtest.h>

namespace plumbline::reference {
namespace {

TEST(Case, KindsOfTruthHaveTexts) {
  EXPECT_EQ(to_string(Truth::Exact), "exact");
  EXPECT_EQ(to_string(Truth::SameOrder), "same-order");
  EXPECT_EQ(to_string(Truth::Bounded), "bounded");
}

}  // namespace
}  // namespace plumbline::reference

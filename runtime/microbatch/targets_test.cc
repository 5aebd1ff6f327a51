#include "runtime/microbatch/targets.h"

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include "runtime/testing/refusal.h"

namespace plumbline::microbatch {
namespace {

TEST(Targets, AreTensorsWhereThereIsOne) {
  const at::Tensor tensor = at::ones({2});
  const Targets one = tensor;
  EXPECT_EQ(one.size(), 1u);
  EXPECT_TRUE(one.one().is_same(tensor));
  const Targets none = at::Tensor();
  EXPECT_FALSE(none.defined());
  EXPECT_FALSE(none.one().defined());
  EXPECT_FALSE(Targets(std::vector<at::Tensor>(1)).defined());
}

TEST(Targets, SeveralAreNeitherReadAsOneNorPartlyUndefined) {
  const at::Tensor tensor = at::ones({2});
  const Targets two = {tensor, tensor};
  EXPECT_EQ(testing::refusal([&] { two.one(); }),
            "one target is read where there are 2; let the loss function take plumbline::Targets");
  EXPECT_EQ(testing::refusal([&] { const Targets partly = {tensor, at::Tensor()}; }),
            "target 1 of 2 is undefined; give all targets or none");
}

}  // namespace
}  // namespace plumbline::microbatch

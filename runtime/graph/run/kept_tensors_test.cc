#include "runtime/graph/run/kept_tensors.h"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace plumbline::graph {
namespace {

TEST(KeptTensors, RestoreTheSignOfAZero) {
  at::Tensor buffer = at::zeros({3});
  {
    KeptTensors kept;
    kept.keep(buffer);
    buffer.neg_();
    ASSERT_TRUE(at::signbit(buffer).all().item<bool>());
  }
  EXPECT_FALSE(at::signbit(buffer).any().item<bool>());
}

TEST(KeptTensors, WriteNothingToATensorOfNaNsThatNobodyChanged) {
  const at::Tensor buffer = at::full({3}, std::numeric_limits<float>::quiet_NaN());
  const auto version = buffer._version();
  {
    KeptTensors kept;
    kept.keep(buffer);
  }
  EXPECT_EQ(buffer._version(), version);
}

}  // namespace
}  // namespace plumbline::graph

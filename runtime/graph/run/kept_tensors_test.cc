#include "runtime/graph/run/kept_tensors.h"

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/zeros.h>

#include <functional>
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

TEST(KeptTensors, RestoreSizesStridesAndMemory) {
  const std::function<void(const at::Tensor&)> changes[] = {
      [](const at::Tensor& t) { t.t_(); },
      [](const at::Tensor& t) { t.unsqueeze_(0).add_(1); },
      [](const at::Tensor& t) { t.resize_({5, 7}).fill_(3); },
      [](const at::Tensor& t) { t.resize_({2}); },
      [](const at::Tensor& t) { t.as_strided_({3}, {1}, 2); },
      [](const at::Tensor& t) { t.set_(at::ones({2, 3})); },
  };
  for (const int64_t rows : {2, 3})
    for (const auto& change : changes) {
      const at::Tensor content = at::arange(rows * 3, at::kFloat).view({rows, 3}), buffer = content.clone();
      const c10::StorageImpl* const memory = buffer.storage().unsafeGetStorageImpl();
      {
        KeptTensors kept;
        kept.keep(buffer);
        change(buffer);
      }
      EXPECT_EQ(buffer.sizes(), content.sizes());
      EXPECT_EQ(buffer.strides(), content.strides());
      EXPECT_EQ(buffer.storage().unsafeGetStorageImpl(), memory);
      EXPECT_TRUE(at::equal(buffer, content));
    }
}

}  // namespace
}  // namespace plumbline::graph

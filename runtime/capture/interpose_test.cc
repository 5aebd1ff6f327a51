#include "runtime/capture/interpose.h"

#include <ATen/ATen.h>
#include <ATen/ThreadLocalState.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <c10/core/InferenceMode.h>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace plumbline::capture {
namespace {

/// Records the names of the operators and forwards the calls.
class NamesOfCalls : public Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    seen.push_back(op.operator_name().name);
    op.callBoxed(stack);
  }
  int64_t count(const std::string& name) const { return std::count(seen.begin(), seen.end(), name); }

  std::vector<std::string> seen;
};

/// Doubles the result of every mm.
class Doubling : public Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    op.callBoxed(stack);
    if (op.operator_name().name == "aten::mm") {
      const at::Tensor result = stack->back().toTensor();
      stack->back() = result * 2;
    }
  }
};

class Throwing : public Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack*) override {
    throw std::runtime_error(op.operator_name().name);
  }
};

at::Tensor numbers(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).reshape(shape) / 7 - 1;
}

TEST(Interpose, SeesForwardAndBackwardAndChangesNothing) {
  const auto run = [](at::Tensor& weight, at::Tensor& bias) {
    weight = numbers({5, 4}).requires_grad_();
    bias = numbers({5}).requires_grad_();
    const at::Tensor loss = at::relu(at::linear(numbers({3, 4}), weight, bias)).sum();
    loss.backward();
    return loss.detach();
  };
  at::Tensor weight, bias, plain_weight, plain_bias;
  const at::Tensor plain = run(plain_weight, plain_bias);
  NamesOfCalls names;
  at::Tensor loss;
  {
    const InterposerScope scope(names);
    loss = run(weight, bias);
  }
  EXPECT_TRUE(at::equal(loss, plain));
  EXPECT_TRUE(at::equal(weight.grad(), plain_weight.grad()));
  EXPECT_TRUE(at::equal(bias.grad(), plain_bias.grad()));
  EXPECT_EQ(names.count("aten::linear"), 0) << "composite operators come in their parts";
  EXPECT_EQ(names.count("aten::addmm"), 1);
  EXPECT_EQ(names.count("aten::relu"), 1);
  EXPECT_EQ(names.count("aten::threshold_backward"), 1);
  EXPECT_EQ(names.count("aten::mm"), 1) << "the gradient of the weight";
  const size_t before = names.seen.size();
  numbers({3});
  EXPECT_EQ(names.seen.size(), before) << "the scope is over";
}

TEST(Interpose, SeesAGradientAccumulate) {
  const at::Tensor weight = numbers({4}).requires_grad_();
  (weight * 2).sum().backward();
  const at::Tensor loss = (weight * 3).sum();
  NamesOfCalls names;
  {
    const InterposerScope scope(names);
    loss.backward();
  }
  EXPECT_EQ(names.count("aten::add_"), 1);
  EXPECT_TRUE(at::equal(weight.grad(), at::full({4}, 5.0, at::kDouble)));
}

TEST(Interpose, SeesFactoriesAndThePartsOfCompositesInInferenceMode) {
  NamesOfCalls names;
  const c10::InferenceMode inference;
  const at::Tensor weight = numbers({5, 4});
  const InterposerScope scope(names);
  const at::Tensor ones = at::ones({3, 4}, at::kDouble);
  const at::Tensor out = at::linear(ones, weight);
  EXPECT_EQ(names.count("aten::ones"), 1);
  EXPECT_EQ(names.count("aten::linear"), 0);
  EXPECT_EQ(names.count("aten::mm") + names.count("aten::addmm"), 1);
}

TEST(Interpose, ReplacedResultsAreUsedForwardAndBackward) {
  const at::Tensor a = numbers({2, 3}).requires_grad_(), b = numbers({3, 2}).requires_grad_();
  Doubling doubling;
  const InterposerScope scope(doubling);
  const at::Tensor out = at::mm(a, b);
  out.sum().backward();
  // By hand: out = 2ab by the forward call; d(sum)/da = ones b^T by one more mm, doubled as well.
  EXPECT_EQ(out.grad_fn()->name(), "MmBackward0");
  double expected = 0, row = 0;
  for (int k = 0; k < 3; ++k) expected += (k / 7.0 - 1) * ((2 * k) / 7.0 - 1);
  for (int j = 0; j < 2; ++j) row += j / 7.0 - 1;
  EXPECT_DOUBLE_EQ(out[0][0].item<double>(), 2 * expected);
  EXPECT_DOUBLE_EQ(a.grad()[0][0].item<double>(), 2 * row);
}

TEST(Interpose, KeepsVersionCountersAndTheGraph) {
  NamesOfCalls names;
  const InterposerScope scope(names);
  const at::Tensor x = numbers({4}).requires_grad_();
  const at::Tensor y = x * 3;
  const auto version = y._version();
  y.select(0, 1).mul_(5);
  EXPECT_EQ(y._version(), version + 1);
  EXPECT_EQ(names.count("aten::mul_"), 1);
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::tensor({3.0, 15.0, 3.0, 3.0}, at::kDouble)));
  const at::Tensor saved = x.exp();
  saved.detach().add_(1);
  EXPECT_ANY_THROW(saved.sum().backward()) << "a saved value that was overwritten is still noticed";
}

TEST(Interpose, ScopesNest) {
  NamesOfCalls outer, inner;
  const InterposerScope outer_scope(outer);
  at::ones({1});
  {
    const InterposerScope inner_scope(inner);
    at::ones({1});
    at::ones({1});
  }
  at::ones({1});
  EXPECT_EQ(outer.count("aten::ones"), 2);
  EXPECT_EQ(inner.count("aten::ones"), 2);
}

TEST(Interpose, ExceptionsPassAndLeaveNothingBehind) {
  const at::Tensor one = at::ones({1}), weight = at::ones({1}).requires_grad_();
  const at::Tensor loss = (weight * 2).sum();
  NamesOfCalls outer;
  {
    const InterposerScope outer_scope(outer);
    Throwing throwing;
    try {
      const InterposerScope scope(throwing);
      at::exp(one);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "aten::exp");
    }
    at::exp(one);
    {
      const InterposerScope scope(throwing);
      EXPECT_ANY_THROW(loss.backward({}, /*retain_graph=*/true));
      EXPECT_THROW(at::exp(one), std::runtime_error) << "the same scope stays active after a throw";
    }
    loss.backward();
  }
  EXPECT_EQ(outer.count("aten::exp"), 1);
  EXPECT_EQ(weight.grad().item<float>(), 2);
  EXPECT_FALSE(c10::impl::tls_is_dispatch_key_included(detail::kInterposerKey));
  EXPECT_FALSE(c10::impl::tls_is_dispatch_key_excluded(detail::kInterposerKey));
}

TEST(Interpose, OtherThreadsAreNotAffected) {
  NamesOfCalls names;
  const InterposerScope scope(names);
  const at::ThreadLocalState state;
  std::thread([] { at::ones({1}).exp(); }).join();
  double sum = 0;
  std::thread([&] {
    const at::ThreadLocalStateGuard guard(state);
    const at::Tensor weight = at::ones({3}, at::kDouble).requires_grad_();
    at::linear(at::ones({1, 3}, at::kDouble), weight.unsqueeze(0)).sum().backward();
    sum = weight.grad().sum().item<double>();
  }).join();
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(names.seen, std::vector<std::string>());
}

TEST(Interpose, WhatAnInterposerCallsIsNeitherInterposedNorRecorded) {
  class Busy : public Interposer {
   public:
    void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
      ++calls;
      EXPECT_FALSE((leaf * 2).requires_grad());
      op.callBoxed(stack);
    }
    at::Tensor leaf = at::ones({1}).requires_grad_();
    int calls = 0;
  } busy;
  const InterposerScope scope(busy);
  const at::Tensor empty = at::empty({2});
  EXPECT_EQ(busy.calls, 1);
}

}  // namespace
}  // namespace plumbline::capture

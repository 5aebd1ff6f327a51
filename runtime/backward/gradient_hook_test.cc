// The operator against Tensor::register_hook() on the same value.
#include "runtime/backward/gradient_hook.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "runtime/backward/split/split_backward.h"
#include "runtime/capture/capture.h"
#include "runtime/graph/run/program.h"

namespace plumbline::backward {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr double kFactor = 2, kLimit = 3;

at::Tensor by_operator(const at::Tensor& h) { return gradient_hook(h, kFactor, kLimit); }

at::Tensor by_hook(const at::Tensor& h) {
  at::Tensor alias = h.view_as(h);
  if (alias.requires_grad())
    alias.register_hook([](const at::Tensor& grad) { return (grad * kFactor).clamp(-kLimit, kLimit); });
  return alias;
}

/// One hooked value with two readers, whose gradients exceed the limit together only.
at::Tensor body(const at::Tensor& x, const at::Tensor& w, at::Tensor (*hooked)(const at::Tensor&)) {
  const at::Tensor h = hooked(x.mm(w));
  return (h + h.tanh()).sum();
}

struct HookSetting {
  at::Tensor x, w;
  HookSetting() {
    at::manual_seed(4);
    x = at::randn({3, 4}).requires_grad_();
    w = at::randn({4, 4}).requires_grad_();
  }
};

TEST(GradientHook, ChangesTheGradientAsARegisteredHook) {
  const HookSetting expected, found;
  body(expected.x, expected.w, by_hook).backward();
  body(found.x, found.w, by_operator).backward();
  EXPECT_TRUE(at::equal(found.x.grad(), expected.x.grad()));
  EXPECT_TRUE(at::equal(found.w.grad(), expected.w.grad()));
  const HookSetting without;
  body(without.x, without.w, [](const at::Tensor& h) { return h; }).backward();
  EXPECT_FALSE(at::equal(without.x.grad(), expected.x.grad()));
}

TEST(GradientHook, IsCalledOnceInHalves) {
  const HookSetting expected, found;
  body(expected.x, expected.w, by_hook).backward();
  const Tensors roots = {body(found.x, found.w, by_operator)}, root_grads = {at::Tensor()}, inputs = {found.x};
  Tensors input_grads;
  WeightBackward rest;
  stage_backward_input(roots, root_grads, inputs, input_grads, rest);
  EXPECT_TRUE(at::equal(input_grads.at(0), expected.x.grad()));
  EXPECT_FALSE(found.w.grad().defined());
  stage_backward_weight(rest);
  EXPECT_TRUE(at::equal(found.w.grad(), expected.w.grad()));
}

TEST(GradientHook, ACaptureKeepsIt) {
  const HookSetting expected, found;
  body(expected.x, expected.w, by_hook).backward();
  torch::nn::Module root;
  root.register_parameter("w", found.w);
  const graph::Graph graph = capture::capture(
      root, [&](const Tensors& in) { return Tensors{body(in[0], found.w, by_operator)}; }, {{"x", found.x}});
  Tensors outputs;
  const Tensors inputs = {found.x};
  graph::Program(graph).run(inputs, outputs);
  outputs.at(0).backward();
  EXPECT_TRUE(at::equal(found.x.grad(), expected.x.grad()));
  EXPECT_TRUE(at::equal(found.w.grad(), expected.w.grad()));
}

TEST(GradientHook, WithoutAutogradIsTheValueItself) {
  const at::Tensor x = at::randn({3});
  EXPECT_TRUE(gradient_hook(x, kFactor).is_alias_of(x));
  EXPECT_TRUE(at::equal(gradient_hook(x, kFactor), x));
}

}  // namespace
}  // namespace plumbline::backward

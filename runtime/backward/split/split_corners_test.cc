// Corner cases where halves could silently differ from the whole: gradients changed in between, undefined gradients,
// halves inside another backward, nodes whose edges are on unusual sides.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/backward/queued_linear.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/backward/testing/backward_test_models.h"
#include "runtime/error.h"
#include "runtime/testing/leaf.h"

namespace plumbline::backward {
namespace {

using testing::leaf;

using namespace backward_test;

/// I, then W.
Tensors by_halves(const Tensors& roots, const Tensors& grads, const Tensors& inputs) {
  WeightBackward weights;
  Tensors made;
  stage_backward_input(roots, grads, inputs, made, weights, {.accumulate_into_inputs = false});
  stage_backward_weight(weights);
  return made;
}

TEST(SplitCorners, ARootGradientThatChangesBetweenTheHalvesIsNoticed) {
  at::manual_seed(1);
  const at::Tensor x = leaf({3, 4}), w = leaf({4, 4}), p = leaf({3, 4});
  const at::Tensor buffer = at::randn({3, 4});
  WeightBackward weights;
  Tensors made;
  stage_backward_input(Tensors{x.matmul(w)}, Tensors{buffer}, Tensors{x}, made, weights);
  buffer.zero_();  // like a receive buffer reused by the next micro-batch
  EXPECT_THROW(stage_backward_weight(weights), Error);
  EXPECT_FALSE(w.grad().defined());
  // A returned gradient may be the one that is kept.
  stage_backward_input(Tensors{x.view({3, 4}) + p}, Tensors{at::randn({3, 4})}, Tensors{x}, made, weights);
  made[0].mul_(0);
  EXPECT_THROW(stage_backward_weight(weights), Error);
}

/// The identity whose backward returns no gradient.
struct Silent : torch::autograd::Function<Silent> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static Tensors backward(torch::autograd::AutogradContext*, Tensors) { return {at::Tensor()}; }
};

/// The identity; an undefined gradient becomes zeros on its way (materialize_grads).
struct Filling : torch::autograd::Function<Filling> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static Tensors backward(torch::autograd::AutogradContext*, Tensors grads) { return grads; }
};

TEST(SplitCorners, UndefinedGradientsGoWhereTheyGoInAFullBackward) {
  for (const bool product : {false, true}) {
    Tensors made[2];
    int calls[2] = {0, 0};
    for (const bool split : {false, true}) {
      at::manual_seed(2);
      const at::Tensor x = leaf({3, 4}), p = leaf({4, 4}), q = leaf({4, 4});
      const at::Tensor filled = Filling::apply(p);
      filled.register_hook([&](const at::Tensor&) { ++calls[split]; });
      // A gradient reaches `q`, so that its accumulator adds a real one to the zeros.
      const at::Tensor y = product ? x.matmul(filled) : x.slice(0, 0, 1) * filled.sum(0);
      const at::Tensor out = Silent::apply(y).sum() + (x.matmul(q)).sum() + (x.matmul(p)).sum() * (product ? 0 : 1);
      if (split)
        by_halves({out}, {at::ones({})}, {x});
      else
        torch::autograd::backward({out}, {at::ones({})});
      made[split] = {p.grad(), q.grad()};
    }
    EXPECT_EQ(calls[0], calls[1]) << product;
    for (int i : {0, 1}) EXPECT_TRUE(same(made[0][i], made[1][i])) << product << " " << i;
  }
}

/// A hook of another backward that requests some gradients only; the backward inside it must ignore that request.
TEST(SplitCorners, HalvesInsideAnotherBackward) {
  at::manual_seed(3);
  const at::Tensor x = leaf({3, 4}), w = leaf({4, 4}), z = leaf({2}), grad = at::randn({3, 4});
  const at::Tensor inner = x.matmul(w), middle = z * 2;
  middle.register_hook([&](const at::Tensor&) { by_halves({inner}, {grad}, {x}); });
  torch::autograd::grad({middle.sum()}, {z});
  EXPECT_TRUE(same(x.detach().t().mm(grad), w.grad()));
}

TEST(SplitCorners, AnInputAmongTheOutputsIsNotPoisoned) {
  at::manual_seed(4);
  const at::Tensor upstream = leaf({3, 4}), w = leaf({4, 4});
  const at::Tensor x = upstream * 3;  // no leaf: the previous stage continues with its gradient
  const Tensors grads = {at::randn({3, 4}), at::randn({3, 4})};
  const Tensors made = by_halves({x, x.matmul(w)}, grads, {x});
  torch::autograd::backward({x}, {made[0]});
  EXPECT_TRUE(same((grads[1].mm(w.detach().t()) + grads[0]) * 3, upstream.grad()) ||
              same((grads[0] + grads[1].mm(w.detach().t())) * 3, upstream.grad()));
}

/// The input's .grad may be sparse, and its new gradient dense.
TEST(SplitCorners, InputsThatHoldASparseGradient) {
  const at::Tensor table = at::arange(12, at::kFloat).view({4, 3}).requires_grad_(true), w = at::ones({3, 2});
  at::embedding(table, at::tensor({1, 3}), -1, false, /*sparse=*/true).sum().backward();
  ASSERT_TRUE(table.grad().is_sparse());
  WeightBackward weights;
  Tensors made;
  stage_backward_input(Tensors{table.matmul(w)}, Tensors{at::ones({4, 2})}, Tensors{table}, made, weights);
  stage_backward_weight(weights);
  const at::Tensor expected = at::full({4, 3}, 2.);
  EXPECT_TRUE(same(expected, made[0]));
  EXPECT_TRUE(same(expected + at::tensor({0., 1., 0., 1.}, at::kFloat).unsqueeze(1), table.grad()));
}

/// Any of x, weight and bias may come from the inputs or from the parameters.
TEST(SplitCorners, AQueuedLinearWithItsEdgesOnAnySide) {
  for (int sides = 0; sides < 27; ++sides) {
    Tensors made[2];
    for (const bool split : {false, true}) {
      at::manual_seed(5);
      const at::Tensor input = leaf({4, 4}), param = leaf({4, 4}), constant = at::randn({4, 4});
      const auto from = [&](int side) { return side == 0 ? input * 2 : side == 1 ? param * 2 : constant * 2; };
      const at::Tensor y = queued_linear(from(sides % 3), from(sides / 3 % 3), from(sides / 9).select(0, 1));
      const Tensors roots = {y + input}, grads = {at::randn({4, 4})};
      Tensors of_input;
      if (split)
        of_input = by_halves(roots, grads, {input});
      else
        stage_backward(roots, grads, Tensors{input}, of_input);
      made[split] = {of_input[0], param.grad()};
    }
    for (int i : {0, 1}) EXPECT_TRUE(same(made[0][i], made[1][i])) << "sides " << sides << ", gradient " << i;
  }
}

TEST(SplitCorners, AQueuedLinearsInputThatChangesBetweenTheHalvesIsNoticed) {
  const at::Tensor x = leaf({3, 4}), w = leaf({4, 4});
  WeightBackward weights;
  Tensors made;
  stage_backward_input(Tensors{queued_linear(x, w, {})}, Tensors{at::randn({3, 4})}, Tensors{x}, made, weights);
  {
    const at::NoGradGuard no_grad;
    x.zero_();
  }
  EXPECT_THROW(stage_backward_weight(weights), Error);
}

}  // namespace
}  // namespace plumbline::backward

// Backward from an output whose memory is freed, whole and in halves.
#include "runtime/backward/released_output.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/backward/stage_backward.h"
#include "runtime/backward/testing/backward_test_models.h"
#include "runtime/error.h"
#include "runtime/testing/leaf.h"

namespace plumbline::backward {
namespace {

using testing::leaf;

using namespace backward_test;

/// Tells whether a tensor's memory is still alive.
class Watch {
 public:
  explicit Watch(const at::Tensor& tensor) : storage_(tensor.storage().getWeakStorageImpl()) {}
  bool gone() const { return storage_.expired(); }

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
};

/// 3 x w; its node keeps a tensor that has no other owner.
struct Tripled : torch::autograd::Function<Tripled> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& w,
                            const at::Tensor& token) {
    context->saved_data["token"] = token;
    context->save_for_backward({x, w});
    return x.matmul(w) * 3;
  }
  static Tensors backward(torch::autograd::AutogradContext* context, Tensors grads) {
    const Tensors saved = context->get_saved_variables();
    return {(grads[0] * 3).matmul(saved[1].t()), saved[0].t().matmul(grads[0] * 3), {}};
  }
};

class ReleasedOutput : public ::testing::TestWithParam<bool> {
 protected:
  ReleasedOutput() { at::manual_seed(9); }
  /// Whole, or in halves: the results must be equal.
  Tensors backward(const Tensors& roots, const Tensors& grads, const Tensors& inputs) {
    Tensors input_grads;
    if (GetParam()) {
      stage_backward(roots, grads, inputs, input_grads);
    } else {
      WeightBackward weights;
      stage_backward_input(roots, grads, inputs, input_grads, weights);
      stage_backward_weight(weights);
    }
    return input_grads;
  }
  std::string failure(const Tensors& roots, const Tensors& grads) try {
    backward(roots, grads, {x});
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
  at::Tensor x = leaf({3, 4}), w = leaf({4, 4}), b = leaf({4}), g = at::randn({3, 4});
};

TEST_P(ReleasedOutput, HasTheFormOfTheOutput) {
  const at::Tensor out = at::addmm(b, x, w).to(at::kBFloat16).t(), left = released_output(out);
  EXPECT_EQ(left.sizes(), out.sizes());
  EXPECT_EQ(left.strides(), out.strides());
  EXPECT_EQ(left.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(left.is_meta() && left.requires_grad());
  EXPECT_TRUE(is_released(left));
  EXPECT_FALSE(is_released(out) || is_released(x) || is_released(at::Tensor()));
  EXPECT_TRUE(torch::autograd::impl::gradient_edge(left) == torch::autograd::impl::gradient_edge(out));
}

/// test_stage_backward_from_gradient_edge, test_stage_backward_input_from_gradient_edge
TEST_P(ReleasedOutput, ItsMemoryIsGoneAndItsBackwardIsRight) {
  at::Tensor out = at::addmm(b, x.matmul(w).tanh(), w);
  const Tensors one = torch::autograd::grad({out}, {x, w, b}, {g}, true);
  const Watch memory(out);
  const at::Tensor left = released_output(out);
  EXPECT_FALSE(memory.gone());
  out = at::Tensor();
  EXPECT_TRUE(memory.gone());
  EXPECT_TRUE(same(one[0], backward({left}, {g}, {x})[0]));
  expect_same({one[1], one[2]}, {w.grad(), b.grad()}, "parameter");
  EXPECT_NE(failure({left}, {g}), "accepted") << "a second time";
}

/// test_stage_backward_mixed_edge_and_tensor_outputs
TEST_P(ReleasedOutput, StandsBesideOthers) {
  const at::Tensor h = x.matmul(w), live = h.sigmoid(), none = h.detach(), view = at::linear(h, w, b).chunk(2, 1)[1];
  const at::Tensor gv = at::randn({3, 2}), gw = at::randn({4, 4});
  const Tensors one = torch::autograd::grad({h + b, live, view, w.tanh()}, {x, w, b}, {g, g, gv, gw}, true);
  const Tensors roots = {released_output(h + b), none, live, released_output(view), released_output(w.tanh())};
  EXPECT_TRUE(same(one[0], backward(roots, {g, {}, g, gv, gw}, {x})[0]));
  expect_same({one[1], one[2]}, {w.grad(), b.grad()}, "parameter");
}

/// test_stage_backward_edge_keeps_python_autograd_function_alive
TEST_P(ReleasedOutput, KeepsACustomNodeAlive) {
  at::Tensor token = at::ones({1}), out = Tripled::apply(x, w, token);
  const Watch node(token);
  token = at::Tensor();
  const Tensors one = torch::autograd::grad({out}, {x, w}, {g}, true);
  at::Tensor left = released_output(out);
  out = at::Tensor();
  EXPECT_FALSE(node.gone());
  EXPECT_TRUE(same(one[0], backward({left}, {g}, {x})[0]));
  EXPECT_TRUE(same(one[1], w.grad()));
  left = at::Tensor();
  EXPECT_TRUE(node.gone());
}

TEST_P(ReleasedOutput, OfAnInputOrAParameter) {
  const Tensors roots = {released_output(x), released_output(b), released_output(x.t()), x.matmul(w)};
  const at::Tensor gb = at::randn({4}), gt = at::randn({4, 3});
  const Tensors one = torch::autograd::grad({x * 1, b * 1, x.t(), x.matmul(w)}, {x, b, w}, {g, gb, gt, g});
  EXPECT_TRUE(x.is_leaf() && !is_released(x));
  // Three gradients meet at x. These whole numbers give one sum in any order.
  const Tensors whole = {at::ones({3, 4}), gb, at::full({4, 3}, 2.0), at::zeros({3, 4})};
  EXPECT_TRUE(same(at::full({3, 4}, 3.0), backward(roots, whole, {x})[0]));
  EXPECT_TRUE(same(gb, b.grad()));
  EXPECT_TRUE(same(at::zeros({4, 4}), w.grad()));
}

/// Its accumulator alone does not keep a leaf alive, only the tensor does; a released leaf still gets its gradient.
TEST_P(ReleasedOutput, ALeafThatNobodyElseHolds) {
  at::Tensor input = leaf({2, 2});
  const at::Tensor left = released_output(input), grad = at::randn({2, 2});
  const Tensors back = backward({left}, {grad}, {input});
  EXPECT_TRUE(same(grad, back[0]));
}

/// test_stage_backward_input_edge_requires_output_grads
TEST_P(ReleasedOutput, NeedsItsGradient) {
  const at::Tensor out = x.matmul(w), sum = out.sum();
  for (const at::Tensor& root : {released_output(out), released_output(sum)}) {
    const std::string text = failure({x.sum(), root}, {at::Tensor(), at::Tensor()});
    EXPECT_NE(text.find("released"), std::string::npos) << text;
    EXPECT_NE(text.find("gradient"), std::string::npos) << text;
  }
  EXPECT_FALSE(x.grad().defined() || w.grad().defined());
  const std::string text = failure({released_output(out)}, {at::ones({4, 3})});
  EXPECT_NE(text.find("f32[3,4]"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[4,3]"), std::string::npos) << text;
  EXPECT_EQ(failure({released_output(sum)}, {at::full({}, 2.0)}), "accepted");
}

/// Between forward and backward only autograd's saved values are alive, after I only those that W needs.
TEST_P(ReleasedOutput, HoldsNothingBack) {
  at::Tensor h = x.matmul(w), out = at::addmm(b, h, w);
  const Watch inner(h), outer(out);
  const at::Tensor left = released_output(out);
  h = at::Tensor(), out = at::Tensor();
  EXPECT_TRUE(outer.gone());
  EXPECT_FALSE(inner.gone()) << "the backward of the product needs it";
  WeightBackward weights;
  if (GetParam()) {
    backward({left}, {g}, {x});
  } else {
    Tensors input_grads;
    stage_backward_input(Tensors{left}, Tensors{g}, Tensors{x}, input_grads, weights);
    EXPECT_FALSE(inner.gone()) << "and so does its second half";
    stage_backward_weight(weights);
  }
  EXPECT_TRUE(inner.gone());
}

INSTANTIATE_TEST_SUITE_P(Backward, ReleasedOutput, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "whole" : "in_halves"; });

// --- what is freed when ------------------------------------------------------------------------------------------

/// Values saved for inputs only are freed in the first half, those saved for parameters in the second.
TEST(SplitFrees, EachNodeAfterItsLastHalf) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({3, 4}).requires_grad_(true), w = at::randn({4, 4}).requires_grad_(true);
  at::Tensor h = x.matmul(w).sigmoid(), product = h.matmul(w), grown = product.exp(), out = grown.sin();
  const Watch of_product(h), of_sine(grown);
  h = product = grown = at::Tensor();
  WeightBackward weights;
  Tensors input_grads;
  stage_backward_input(Tensors{out}, Tensors{at::randn({3, 4})}, Tensors{x}, input_grads, weights);
  EXPECT_TRUE(of_sine.gone()) << "no parameter needs it";
  EXPECT_FALSE(of_product.gone()) << "the product's weight needs it";
  stage_backward_weight(weights);
  EXPECT_TRUE(of_product.gone()) << "though the output is still there";
}

/// Dropping a second half instead of running it frees everything.
TEST(SplitFrees, WhatIsDropped) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({3, 4}).requires_grad_(true), w = at::randn({4, 4}).requires_grad_(true);
  at::Tensor h = x.matmul(w).sigmoid(), out = h.matmul(w), grad = at::randn({3, 4});
  const Watch of_h(h), of_grad(grad);
  {
    WeightBackward weights;
    Tensors input_grads;
    stage_backward_input(Tensors{out}, Tensors{grad}, Tensors{x}, input_grads, weights);
    h = out = grad = at::Tensor();
    EXPECT_FALSE(of_h.gone() || of_grad.gone());
  }
  EXPECT_TRUE(of_h.gone());
  EXPECT_TRUE(of_grad.gone());
  EXPECT_FALSE(w.grad().defined());
}

}  // namespace
}  // namespace plumbline::backward

#include "runtime/backward/stage_backward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/testing/leaf.h"
#include "runtime/testing/refusal.h"

namespace plumbline::backward {
namespace {

using testing::leaf;

using c10::IValue;
using Tensors = std::vector<at::Tensor>;

IValue tuple(std::vector<IValue> values) { return c10::ivalue::Tuple::create(std::move(values)); }
IValue list(const Tensors& values) { return c10::List<at::Tensor>(values); }
IValue dict(const std::vector<std::pair<std::string, IValue>>& items) {
  c10::impl::GenericDict made(c10::StringType::get(), c10::AnyType::get());
  for (const auto& [key, value] : items) made.insert(key, value);
  return made;
}
IValue int_list() { return c10::List<int64_t>({1, 2}); }

Tensors flat(const Tensors& roots, const Tensors& grads, const Tensors& inputs) {
  Tensors result;
  stage_backward(roots, grads, inputs, result);
  return result;
}

class StageBackward : public ::testing::Test {
 protected:
  StageBackward() { at::manual_seed(5); }
  Tensors expected(const Tensors& roots, const Tensors& grads, const Tensors& of) {
    return torch::autograd::grad(roots, of, grads, /*retain_graph=*/true, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  }
  /// A stage: inputs x and y, a parameter w, outputs a and b.
  at::Tensor x = leaf({3, 4}), y = leaf({3, 2}), w = leaf({4, 2});
  at::Tensor a = x.matmul(w).tanh(), b = a * y + y;
  at::Tensor ga = at::randn({3, 2}), gb = at::randn({3, 2});
};

TEST_F(StageBackward, NestedOutputsEqualAutograd) {
  const at::Tensor constant = at::ones({2});
  const Tensors one = expected({a, b}, {ga, gb}, {x, y, w});
  // Tuples and lists are interchangeable; tensors without gradient and non-tensors are skipped.
  const IValue output =
      tuple({3, constant, dict({{"b", tuple({b})}, {"n", 1.5}}), list({a, constant}), IValue(), int_list()});
  const IValue grad =
      tuple({IValue(), int_list(), dict({{"n", IValue()}, {"b", list({gb})}}), tuple({ga, 7}), 1, IValue()});
  const Tensors back = stage_backward(output, grad, {y, 3, x, IValue(), constant});
  ASSERT_EQ(back.size(), 5u);
  EXPECT_TRUE(at::equal(back[0], one[1]));
  EXPECT_TRUE(at::equal(back[2], one[0]));
  EXPECT_TRUE(at::equal(w.grad(), one[2]));
  for (int i : {1, 3, 4}) EXPECT_FALSE(back[i].defined()) << i;
}

TEST_F(StageBackward, NonePrunesWhatHoldsTensors) {
  const Tensors one = expected({a}, {ga}, {x, w});
  for (const IValue& pruned : {tuple({b}), list({b}), dict({{"k", b}})}) {
    w.mutable_grad() = at::Tensor();
    a = x.matmul(w).tanh();
    const Tensors back = stage_backward(tuple({pruned, a}), tuple({IValue(), ga}), {x, y});
    EXPECT_TRUE(at::equal(back[0], one[0]));
    EXPECT_FALSE(back[1].defined());
    EXPECT_TRUE(at::equal(w.grad(), one[1]));
  }
}

TEST_F(StageBackward, AMissingGradientOfAScalarIsOne) {
  const at::Tensor loss = (b * b).sum();
  const Tensors one = expected({loss}, {}, {x, y, w});
  EXPECT_TRUE(at::equal(flat({loss}, {at::Tensor()}, {x})[0], one[0]));
  EXPECT_TRUE(at::equal(w.grad(), one[2]));
  const Tensors half = expected({(y * 3).sum()}, {at::full({}, 0.5)}, {y});
  y.mutable_grad() = at::Tensor();
  EXPECT_TRUE(at::equal(stage_backward((y * 3).sum(), at::full({}, 0.5), {y})[0], half[0]));
  EXPECT_TRUE(at::equal(stage_backward((y * 3).sum(), IValue(), {y})[0], half[0] * 2));
  for (const std::string& text : {testing::failure([&] { flat({a}, {at::Tensor()}, {x}); }),
                                  testing::failure([&] { stage_backward(a, IValue(), {x}); })})
    testing::expect_part(text, "scalar");
}

TEST_F(StageBackward, MismatchesAreToldWithAllShapes) {
  const auto of = [&](const IValue& output, const IValue& grad) {
    return testing::failure([&] { stage_backward(output, grad, {x, 3}); });
  };
  testing::expect_part(of(tuple({a, b}), tuple({ga})), "expected 2 gradients for as many outputs, got 1");
  testing::expect_part(of(list({a}), tuple({ga, gb})), "expected 1 gradients for as many outputs, got 2");
  testing::expect_part(of(tuple({a, b}), ga), "expected a gradient of type Tuple, got Tensor");
  testing::expect_part(of(list({a}), dict({{"0", ga}})), "got GenericDict");
  testing::expect_part(of(dict({{"k", a}}), tuple({ga})), "expected a gradient of type Dict, got Tuple");
  testing::expect_part(of(dict({{"k", a}}), dict({{"q", ga}})), "no gradient under the key k");
  testing::expect_part(of(dict({{"k", a}}), dict({{"k", ga}, {"q", gb}})), "the outputs' 1 keys, got 2");
  testing::expect_part(of(a, tuple({ga})), "expected a tensor or None as gradient of a tensor, got Tuple");
  EXPECT_EQ(of(tuple({dict({{"k", a}}), 2, IValue()}), tuple({dict({{"k", at::ones({3, 4})}}), IValue(), 2.5})),
            "Failed to run stage backward: an output is f32[3,2], its gradient f32[3,4]; they need the same sizes; "
            "stage output: ({k: f32[3,2]*}, Int, None), output gradient: ({k: f32[3,4]}, None, Double), "
            "input: (f32[3,4]*, Int)");
  EXPECT_EQ(testing::failure([&] { flat({ga, a}, {at::Tensor(), at::ones({1, 2})}, {x, at::Tensor()}); }),
            "Failed to run stage backward: an output is f32[3,2], its gradient f32[1,2]; they need the same sizes; "
            "stage output: (f32[3,2], f32[3,2]*), output gradient: (undefined, f32[1,2]), "
            "input: (f32[3,4]*, undefined)");
  EXPECT_FALSE(w.grad().defined()) << "nothing ran";
}

TEST_F(StageBackward, NoRootAtAllIsAnError) {
  testing::expect_part(testing::failure([&] { flat({}, {}, {x}); }), "no output requires a gradient; stage output: ()");
  testing::expect_part(testing::failure([&] { flat({ga, at::Tensor()}, {gb, gb}, {x}); }),
                       "no output requires a gradient");
  for (const IValue& output : {tuple({}), IValue(3), IValue(ga), IValue()})
    testing::expect_part(testing::failure([&] { stage_backward(output, IValue(), {x}); }),
                         "no output requires a gradient");
  testing::expect_part(testing::failure([&] { stage_backward(tuple({a}), IValue(), {x}); }),
                       "no output requires a gradient");
}

TEST_F(StageBackward, InputGradientsAreMovedOutAndParametersAccumulate) {
  const Tensors first = expected({a}, {ga}, {x, w}), second = expected({b}, {gb}, {x, w, y});
  EXPECT_TRUE(at::equal(flat({x.matmul(w).tanh()}, {ga}, {x, y})[0], first[0]));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(at::equal(w.grad(), first[1]));
  Tensors back = {ga, ga, ga};  // longer than needed, and not empty
  stage_backward(Tensors{b}, Tensors{gb}, Tensors{x, y}, back);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(at::equal(back[0], second[0])) << "the first call left nothing behind";
  EXPECT_TRUE(at::equal(back[1], second[2]));
  EXPECT_TRUE(at::equal(w.grad(), first[1] + second[1]));
  EXPECT_FALSE(x.grad().defined() || y.grad().defined());
  EXPECT_FALSE(back[0].requires_grad());
}

TEST_F(StageBackward, UnusedInputsHaveAnEmptySlot) {
  const at::Tensor unused = leaf({2}), index = at::ones({2}, at::kLong), inner = x * 2;
  const Tensors back = flat({inner.sum() + a.sum()}, {at::Tensor()}, {unused, x, index, at::Tensor(), inner});
  ASSERT_EQ(back.size(), 5u);
  for (int i : {0, 2, 3, 4}) EXPECT_FALSE(back[i].defined()) << i;
  EXPECT_TRUE(back[1].defined());
}

TEST_F(StageBackward, TheSameOutputTwiceCountsTwice) {
  const Tensors one = expected({a}, {ga + gb}, {x});
  // Autograd sums the gradients that meet at a node before it runs it, so this is the same arithmetic.
  EXPECT_TRUE(at::equal(flat({a, a}, {ga, gb}, {x})[0], one[0]));
}

TEST_F(StageBackward, AnInputMayBeAnOutput) {
  const at::Tensor kept = ga.clone();
  const Tensors back = flat({y, x, y.t()}, {ga, at::ones({3, 4}), gb.t()}, {x, y});
  EXPECT_TRUE(at::equal(back[0], at::ones({3, 4})));
  EXPECT_TRUE(at::equal(back[1], ga + gb));
  EXPECT_TRUE(at::equal(ga, kept)) << "the gradient that was given is not changed";
  EXPECT_FALSE(y.grad().defined());
}

TEST_F(StageBackward, ViewsAreOutputsLikeOthers) {
  const Tensors parts = {a.select(1, 0), a.t().narrow(0, 1, 1), a.expand({2, 3, 2})};
  const Tensors grads = {at::randn({3}), at::randn({1, 3}), at::randn({2, 3, 2})};
  const Tensors one = expected(parts, grads, {x, w});
  EXPECT_TRUE(at::equal(stage_backward(list(parts), list(grads), {x})[0], one[0]));
  EXPECT_TRUE(at::equal(w.grad(), one[1]));
}

TEST_F(StageBackward, AnErrorInsideAutogradKeepsTheMessage) {
  flat({a}, {ga}, {x});  // frees the graph
  const std::string text = testing::failure([&] { flat({a}, {ga}, {x}); });
  testing::expect_part(text, "second time");
  testing::expect_part(text, "; stage output: (f32[3,2]*), output gradient: (f32[3,2]), input: (f32[3,4]*)");
}

}  // namespace
}  // namespace plumbline::backward

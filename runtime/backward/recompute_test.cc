// What a backward with recomputation gives: the bits of plain autograd.
#include "runtime/backward/recompute.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/backward/testing/recompute_models.h"
#include "runtime/capture/interpose.h"
#include "runtime/graph/run/random_turn.h"

namespace plumbline::backward {
namespace {

using recompute_test::Backward;
using recompute_test::block;
using recompute_test::expect_bits_of_autograd;
using recompute_test::expect_same;
using recompute_test::input_half;
using recompute_test::layer;
using recompute_test::layer_parameters;
using recompute_test::Model;
using recompute_test::Recomputation;
using recompute_test::RecomputeGradients;
using recompute_test::run;
using recompute_test::two_layers;
using testing::leaf;

using Tensors = std::vector<at::Tensor>;

/// Counts this thread's calls of an operator.
class CallCounter : public capture::Interposer {
 public:
  explicit CallCounter(std::string name) : name_("aten::" + std::move(name)) {}
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    count += op.operator_name().name == name_;
    op.callBoxed(stack);
  }
  int count = 0;

 private:
  std::string name_;
};

TEST_F(Recomputation, HasTheBitsOfAutograd) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) expect_bits_of_autograd(two_layers(dtype));
}

TEST_F(Recomputation, OfBlocksWithoutAnInputThatRequiresAGradient) {
  expect_bits_of_autograd(two_layers(at::kFloat, false));
}

TEST_F(Recomputation, RunsEachBlockOnceMoreInAll) {
  const Model model = two_layers(at::kFloat);
  for (const bool needs_gradient : {true, false})
    for (const Backward backward : {Backward::Full, Backward::Halves}) {
      const Model of = two_layers(at::kFloat, needs_gradient);
      CallCounter plain("gelu"), again("gelu"), products("mm"), products_again("mm");
      const auto count = [&](CallCounter& calls, bool recompute) {
        const capture::InterposerScope scope(calls);
        run(of, recompute, backward);
      };
      count(plain, false), count(again, true), count(products, false), count(products_again, true);
      EXPECT_EQ(plain.count, 2);
      EXPECT_EQ(again.count, 4);
      EXPECT_EQ(products_again.count, products.count);  // those of the backward; the forward's are addmm
    }
}

TEST_F(Recomputation, OfAMiddleBlockWithSeveralInputsAndOutputs) {
  Model model;
  model.inputs = {leaf({4, 6}), leaf({4, 6}), at::randint(0, 4, {3}, at::kLong), at::Tensor()};
  model.parameters = {leaf({6, 6}), leaf({6, 6}), leaf({4, 6})};
  model.parameters[1].requires_grad_(false);
  model.forward = [](const Model& m, bool recompute) {
    const at::Tensor x = m.inputs[0].matmul(m.parameters[0]).tanh();
    const at::Tensor scale = m.parameters[2].exp();  // depends on a parameter only
    const Tensors made = block(recompute,
                               [](std::span<const at::Tensor> v, Tensors& outputs) {
                                 EXPECT_FALSE(v[3].defined());
                                 const at::Tensor h = v[0].matmul(v[6]) * v[4] + v[1].sin();
                                 outputs = {h, v[2] + 1, at::Tensor(), h.matmul(v[5]).index_select(0, v[2]), h.sum()};
                               },
                               {x, m.inputs[1], m.inputs[2], at::Tensor(), scale}, {m.parameters[0], m.parameters[1]});
    EXPECT_FALSE(made[1].requires_grad());
    EXPECT_TRUE(made[4].requires_grad());
    return Tensors{made[0] * made[4], made[3].relu(), made[1], m.inputs[1].cos()};
  };
  expect_bits_of_autograd(model);
}

/// Inputs that reach one output only, and inputs that reach none.
TEST_F(Recomputation, OfWhatTheLossDoesNotReach) {
  Model model;
  model.inputs = {leaf({4, 6}), leaf({4, 6})};
  model.parameters = {leaf({6, 6}), leaf({6, 6})};
  model.forward = [](const Model& m, bool recompute) {
    const Tensors made = block(
        recompute,
        [](std::span<const at::Tensor> v, Tensors& outputs) {
          outputs = {v[0].matmul(v[2]), v[1].matmul(v[3]).tanh()};
        },
        m.inputs, m.parameters);
    return Tensors{made[1]};
  };
  expect_bits_of_autograd(model);
}

TEST_F(Recomputation, OfOutputsThatAreInputsParametersAndViews) {
  Model model;
  model.inputs = {leaf({4, 6}), leaf({4, 6})};
  model.parameters = {leaf({6, 6}), leaf({6})};
  model.forward = [](const Model& m, bool recompute) {
    const Tensors made = block(
        recompute,
        [](std::span<const at::Tensor> v, Tensors& outputs) {
          const at::Tensor h = v[0].matmul(v[2]);
          outputs = {v[0], v[1].t(), v[3], v[2].narrow(0, 0, 2), h, h, h.view({24}), h.unbind(0)[1]};
        },
        m.inputs, m.parameters);
    Tensors outputs;
    for (const at::Tensor& output : made) outputs.push_back(output * 2);
    outputs.push_back(made[4]);
    return outputs;
  };
  expect_bits_of_autograd(model);
}

TEST_F(Recomputation, NestsInItself) {
  Model model = two_layers(at::kFloat);
  model.forward = [](const Model& m, bool recompute) {
    return block(
        recompute,
        [recompute](std::span<const at::Tensor> v, Tensors& outputs) {
          outputs = block(recompute, layer, {v[0]}, {v.begin() + 1, v.begin() + 5});
          outputs = block(recompute, layer, outputs, {v.begin() + 5, v.end()});
        },
        m.inputs, m.parameters);
  };
  expect_bits_of_autograd(model);
}

/// A parameter of two blocks: each block contributes one summand, the last block's first.
TEST_F(Recomputation, SumsASharedParameterBlockByBlock) {
  Model model;
  model.inputs = {leaf({4, 6})};
  model.parameters = {leaf({6, 6})};
  const auto once = [](std::span<const at::Tensor> v, Tensors& outputs) { outputs = {v[0].matmul(v[1]).tanh()}; };
  const auto twice = [](std::span<const at::Tensor> v, Tensors& outputs) {
    outputs = {v[0].matmul(v[1]).tanh().matmul(v[1]).sin()};
  };
  model.forward = [&](const Model& m, bool recompute) {
    return block(recompute, once, block(recompute, once, block(recompute, once, m.inputs, m.parameters), m.parameters),
                 m.parameters);
  };
  expect_bits_of_autograd(model);

  // With two uses in a block, the oracle's contributions are those of copies.
  Model copies = model;
  copies.parameters.push_back(model.parameters[0].detach().clone().requires_grad_());
  copies.forward = [&](const Model& m, bool) {
    return block(false, twice, block(false, twice, m.inputs, {m.parameters[0]}), {m.parameters[1]});
  };
  model.forward = [&](const Model& m, bool recompute) {
    return block(recompute, twice, block(recompute, twice, m.inputs, m.parameters), m.parameters);
  };
  const RecomputeGradients parts = run(copies, false, Backward::Full);
  const at::Tensor sum = parts.of_parameters[1] + parts.of_parameters[0];
  for (const Backward backward : {Backward::Full, Backward::Halves})
    EXPECT_TRUE(at::equal(run(model, true, backward).of_parameters[0], sum));
}

TEST_F(Recomputation, DrawsTheSameRandomNumbers) {
  Model model = two_layers(at::kFloat);
  const auto dropping = [](std::span<const at::Tensor> v, Tensors& outputs) {
    layer(v, outputs);
    outputs[0] = at::dropout(outputs[0], 0.5, true);
  };
  model.forward = [&](const Model& m, bool recompute) {
    const graph::RandomTurn turn(11);
    const auto drawing = [&](const Block& block) { return recompute ? with_same_random_numbers(block) : block; };
    const Tensors& p = m.parameters;
    const Tensors h = block(recompute, drawing(dropping), m.inputs, {p.begin(), p.begin() + 4});
    // A nested block: the outer one's second run is its own turn.
    return block(recompute, drawing([&, recompute](std::span<const at::Tensor> v, Tensors& outputs) {
                   outputs = block(recompute, recompute ? with_same_random_numbers(dropping) : Block(dropping), {v[0]},
                                   {v.begin() + 1, v.end()});
                   outputs[0] = at::dropout(outputs[0], 0.25, true);
                 }),
                 h, {p.begin() + 4, p.end()});
  };
  const at::Tensor before = graph::random_state();
  expect_bits_of_autograd(model);
  EXPECT_TRUE(at::equal(graph::random_state(), before));
}

TEST_F(Recomputation, IsAPlainCallWithoutGradients) {
  int calls = 0;
  const auto count = [&](auto v, Tensors& out) {
    ++calls;
    out = {v[0] * 2};
  };
  Tensors made;
  const at::Tensor x = leaf({2}), plain = at::ones({2});
  recompute_in_backward(count, {&plain, 1}, {}, made);
  EXPECT_FALSE(made[0].requires_grad());
  const c10::NoGradGuard no_grad;
  recompute_in_backward(count, {&x, 1}, {}, made);
  EXPECT_FALSE(made[0].requires_grad());
  EXPECT_EQ(calls, 2);
}

/// Hooks of the real leaves run once, on the whole gradient.
TEST_F(Recomputation, RunsHooksOfLeavesOnce) {
  const Model model = two_layers(at::kFloat);
  for (const Backward backward : {Backward::Full, Backward::Halves}) {
    const at::Tensor parameter = leaf({8, 8}), x = leaf({3, 5, 8});
    int on_parameter = 0, on_input = 0;
    parameter.register_hook([&](const at::Tensor& grad) { return ++on_parameter, grad * 2; });
    x.register_hook([&](const at::Tensor&) { ++on_input; });
    Tensors p = layer_parameters(8);
    p[0] = parameter;
    Model of{{x}, p, [](const Model& m, bool recompute) { return block(recompute, layer, m.inputs, m.parameters); }};
    const RecomputeGradients plain = run(of, false, backward);
    const RecomputeGradients again = run(of, true, backward);
    expect_same(again.of_parameters, plain.of_parameters, "gradient of parameter");
    EXPECT_EQ(on_parameter, 2);
    EXPECT_EQ(on_input, 2);
  }
}

TEST_F(Recomputation, OfTwoMicrobatchesOnTwoThreads) {
  Tensors parameters = layer_parameters(8);
  const Tensors x[2] = {{leaf({3, 8})}, {leaf({3, 8})}};
  RecomputeGradients alone[2];
  for (int m : {0, 1})
    alone[m] =
        run({x[m], parameters, [](const Model& of, bool) { return block(false, layer, of.inputs, of.parameters); }},
            false, Backward::Full);
  for (int round = 0; round < 20; ++round) {
    for (const at::Tensor& parameter : parameters) parameter.mutable_grad() = at::Tensor();
    Tensors outputs[2], grads[2];
    for (int m : {0, 1}) outputs[m] = block(true, layer, x[m], parameters);
    const auto backward = [&](int m) {
      WeightBackward weights;
      input_half(outputs[m], x[m], grads[m], weights);
      stage_backward_weight(weights);
    };
    std::thread other([&] { backward(1); });
    backward(0);
    other.join();
    for (int m : {0, 1}) expect_same(grads[m], alone[m].of_inputs, "gradient of input");
    // A sum of two does not depend on their order.
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_TRUE(at::equal(parameters[i].grad(), alone[0].of_parameters[i] + alone[1].of_parameters[i])) << i;
  }
}

}  // namespace
}  // namespace plumbline::backward

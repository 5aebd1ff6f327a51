#include "runtime/backward/recompute.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <thread>

#include "runtime/backward/split/split_backward.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/capture/interpose.h"
#include "runtime/error.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/testing/leaf.h"
#include "runtime/testing/refusal.h"

namespace plumbline::backward {
namespace {

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

/// Bytes of live CPU tensors.
class Bytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override { alive += size; }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t alive = 0;
};

/// One computation, for plain autograd and for blocks.
struct Model {
  /// Draws only from its arguments; makes its inputs, parameters and outputs anew each time.
  Tensors inputs, parameters;
  std::function<Tensors(const Model&, bool recompute)> forward;
};

enum class Backward { Full, Halves };

struct RecomputeGradients {
  Tensors outputs, of_inputs, of_parameters;
};

Tensors wave_like(const Tensors& outputs) {
  Tensors grads;
  for (const at::Tensor& output : outputs)
    grads.push_back(
        output.requires_grad()
            ? at::arange(output.numel(), at::kDouble).mul(0.7).sin().to(output.scalar_type()).view_as(output)
            : at::Tensor());
  return grads;
}

void input_half(const Tensors& outputs, const Tensors& inputs, Tensors& input_grads, WeightBackward& weights) {
  stage_backward_input(outputs, wave_like(outputs), inputs, input_grads, weights, {.accumulate_into_inputs = false});
}

RecomputeGradients run(const Model& model, bool recompute, Backward backward) {
  for (const at::Tensor& parameter : model.parameters) parameter.mutable_grad() = at::Tensor();
  RecomputeGradients made;
  made.outputs = model.forward(model, recompute);
  if (backward == Backward::Full) {
    stage_backward(made.outputs, wave_like(made.outputs), model.inputs, made.of_inputs);
  } else {
    WeightBackward weights;
    input_half(made.outputs, model.inputs, made.of_inputs, weights);
    for (const at::Tensor& parameter : model.parameters) EXPECT_FALSE(parameter.grad().defined());
    stage_backward_weight(weights);
  }
  for (const at::Tensor& parameter : model.parameters)
    made.of_parameters.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  return made;
}

void expect_same(const Tensors& ours, const Tensors& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << what << " " << i;
    EXPECT_TRUE(!ours[i].defined() || at::equal(ours[i], theirs[i])) << what << " " << i;
  }
}

/// The oracle is plain autograd in one piece.
void expect_bits_of_autograd(const Model& model) {
  const RecomputeGradients plain = run(model, false, Backward::Full);
  for (const Backward backward : {Backward::Full, Backward::Halves}) {
    SCOPED_TRACE(backward == Backward::Full ? "in one piece" : "in halves");
    const RecomputeGradients again = run(model, true, backward);
    expect_same(again.outputs, plain.outputs, "output");
    expect_same(again.of_inputs, plain.of_inputs, "gradient of input");
    expect_same(again.of_parameters, plain.of_parameters, "gradient of parameter");
  }
}

Tensors block(bool recompute, Block function, const Tensors& inputs, const Tensors& parameters) {
  Tensors outputs;
  if (recompute) {
    recompute_in_backward(std::move(function), inputs, parameters, outputs);
  } else {
    Tensors values = inputs;
    values.insert(values.end(), parameters.begin(), parameters.end());
    function(values, outputs);
  }
  return outputs;
}

/// x, weight, bias, gain, shift: a layer as in a transformer, its input used twice.
void layer(std::span<const at::Tensor> v, Tensors& outputs) {
  const at::Tensor h = at::layer_norm(v[0], {v[0].size(-1)}, v[3], v[4]);
  outputs = {v[0] + at::gelu(at::linear(h, v[1], v[2]))};
}

Tensors layer_parameters(int64_t width, at::ScalarType dtype = at::kFloat) {
  return {leaf({width, width}, dtype), leaf({width}, dtype), leaf({width}, dtype), leaf({width}, dtype)};
}

class Recomputation : public ::testing::Test {
 protected:
  Recomputation() {
    at::set_num_threads(1);
    at::manual_seed(7);
  }
};

Model two_layers(at::ScalarType dtype, bool input_needs_gradient = true) {
  Model model;
  model.inputs = {leaf({3, 5, 8}, dtype).detach().requires_grad_(input_needs_gradient)};
  model.parameters = layer_parameters(8, dtype);
  for (const at::Tensor& parameter : layer_parameters(8, dtype)) model.parameters.push_back(parameter);
  model.forward = [](const Model& m, bool recompute) {
    const Tensors p = m.parameters;
    const Tensors h = block(recompute, layer, m.inputs, {p.begin(), p.begin() + 4});
    return block(recompute, layer, h, {p.begin() + 4, p.end()});
  };
  return model;
}

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

TEST_F(Recomputation, KeepsOnlyItsInputs) {
  const Model model = two_layers(at::kFloat);
  const auto bytes = std::make_shared<Bytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, bytes);
  const Tensors inputs = {leaf({64, 256})};
  Tensors parameters = layer_parameters(256);
  int64_t before = bytes->alive;
  const int64_t activation = 64 * 256 * 4;
  Tensors h = inputs;
  for (int i = 0; i < 4; ++i) h = block(true, layer, h, parameters);
  EXPECT_EQ(bytes->alive - before, 4 * activation);  // three between the blocks, and the output
  WeightBackward weights;
  Tensors grads;
  input_half(h, inputs, grads, weights);
  h.clear();
  grads.clear();
  const int64_t between = bytes->alive - before;
  stage_backward_weight(weights);
  for (const at::Tensor& parameter : parameters) parameter.mutable_grad() = at::Tensor();
  EXPECT_EQ(bytes->alive, before);
  // As plain autograd in halves leaves it; the blocks' arguments are not kept besides.
  before = bytes->alive;
  h = inputs;
  for (int i = 0; i < 4; ++i) h = block(false, layer, h, parameters);
  EXPECT_GT(bytes->alive - before, 4 * 3 * activation);
  input_half(h, inputs, grads, weights);
  h.clear();
  grads.clear();
  EXPECT_LE(between, bytes->alive - before);
}

TEST_F(Recomputation, RunsAgainForARetainedGraph) {
  const Model model = two_layers(at::kFloat);
  const RecomputeGradients plain = run(model, false, Backward::Full);
  for (const at::Tensor& parameter : model.parameters) parameter.mutable_grad() = at::Tensor();
  const Tensors outputs = model.forward(model, true), grads = wave_like(outputs);
  Tensors made;
  for (int i = 0; i < 2; ++i) {
    WeightBackward weights;
    stage_backward_input(outputs, grads, model.inputs, made, weights,
                         {.retain_graph = true, .accumulate_into_inputs = false});
    expect_same(made, plain.of_inputs, "gradient of input");
    if (i == 0) continue;  // the second half never runs
    stage_backward_weight(weights);
  }
  for (size_t i = 0; i < model.parameters.size(); ++i)
    EXPECT_TRUE(at::equal(model.parameters[i].grad(), plain.of_parameters[i])) << i;
  stage_backward(outputs, grads, model.inputs, made);
  expect_same(made, plain.of_inputs, "gradient of input");
  EXPECT_TRUE(at::equal(model.parameters[0].grad(), plain.of_parameters[0] * 2));
}

TEST_F(Recomputation, NoticesChangesInPlace) {
  const Model model = two_layers(at::kFloat);
  for (const at::Tensor& changed : {model.inputs[0], model.parameters[0], model.parameters[7]})
    for (const Backward backward : {Backward::Full, Backward::Halves}) {
      Model changing = model;
      changing.forward = [&](const Model& m, bool recompute) {
        const Tensors outputs = model.forward(m, recompute);
        const c10::NoGradGuard no_grad;
        changed.mul_(1);
        return outputs;
      };
      testing::expect_part(testing::failure<std::exception>([&] { run(changing, true, backward); }),
                           "modified by an inplace operation");
    }
  const at::Tensor x = leaf({2, 3});
  Tensors made;
  testing::expect_part(testing::failure<std::exception>([&] {
                         recompute_in_backward([](auto v, Tensors& out) { out = {v[0].mul_(2)}; }, {&x, 1}, {}, made);
                       }),
                       "the block changes its value 0 f32[2,3] in place");
  // Changes one of two outputs that share memory.
  const auto views = [](std::span<const at::Tensor> v, Tensors& out) {
    const at::Tensor h = v[0] * 3;
    out = {h, h[0]};
  };
  recompute_in_backward(views, {&x, 1}, {}, made);
  made[0].mul_(2);
  testing::expect_part(testing::failure<std::exception>([&] { (made[0].sum() + made[1].sum()).backward(); }),
                       "shares memory with another");
  // A sole output may change.
  recompute_in_backward([](auto v, Tensors& out) { out = {v[0] * 3}; }, {&x, 1}, {}, made);
  made[0].mul_(2).sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::full({2, 3}, 6.0f)));
}

TEST_F(Recomputation, RefusesWhatItCannotDo) {
  const at::Tensor x = leaf({2, 3}), hidden = leaf({2, 3});
  const auto loss = [&](Block block) {
    Tensors made;
    recompute_in_backward(std::move(block), {&x, 1}, {}, made);
    return made.at(0).sum();
  };
  testing::expect_part(
      testing::failure<std::exception>([&] { loss([&](auto v, Tensors& out) { out = {v[0] * hidden}; }).backward(); }),
      "uses a tensor f32[2,3] that requires a gradient and is none of its inputs");
  int calls = 0;
  testing::expect_part(testing::failure<std::exception>([&] {
                         loss([&](auto v, Tensors& out) { out = {v[0].narrow(0, 0, 1 + calls++)}; }).backward();
                       }),
                       "the block made output 0 f32[2,3], at first f32[1,3]");
  calls = 0;
  testing::expect_part(testing::failure<std::exception>(
                           [&] { loss([&](auto v, Tensors& out) { out.assign(1 + calls++, v[0] * 2); }).backward(); }),
                       "the block made 2 outputs, at first 1");
  const at::Tensor twice = loss([](auto v, Tensors& out) { out = {v[0].square()}; });
  testing::expect_part(testing::failure<std::exception>([&] {
                         torch::autograd::grad({twice}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
                       }),
                       "no second derivative");
  twice.backward();
  testing::expect_part(testing::failure<std::exception>([&] { twice.backward(); }), "second time");
  at::autocast::set_autocast_enabled(at::kCPU, true);
  testing::expect_part(testing::failure<std::exception>([&] { loss([](auto v, Tensors& out) { out = {v[0] * 2}; }); }),
                       "inside an autocast region");
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

TEST_F(Recomputation, LeavesNothingBehindAfterAnException) {
  const Model model = two_layers(at::kFloat);
  const RecomputeGradients plain = run(model, false, Backward::Full);
  int calls = 0, fail_at = 0;
  const Block failing = [&](std::span<const at::Tensor> v, Tensors& outputs) {
    if (++calls == fail_at) throw Error("the block failed");
    layer(v, outputs);
  };
  const Tensors& p = model.parameters;
  for (fail_at = 1; fail_at <= 2; ++fail_at)
    for (const Backward backward : {Backward::Full, Backward::Halves}) {
      calls = 0;
      Model broken = model;
      broken.forward = [&](const Model& m, bool) {
        return block(true, layer, block(true, failing, m.inputs, {p.begin(), p.begin() + 4}), {p.begin() + 4, p.end()});
      };
      testing::expect_part(testing::failure<std::exception>([&] { run(broken, true, backward); }), "the block failed");
      EXPECT_TRUE(c10::GradMode::is_enabled());
    }
  model.inputs[0].mutable_grad() = at::Tensor();
  const RecomputeGradients after = run(model, true, Backward::Halves);
  expect_same(after.of_inputs, plain.of_inputs, "gradient of input");
  expect_same(after.of_parameters, plain.of_parameters, "gradient of parameter");
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

// Checks this oracle against plain autograd on the whole model: outputs, loss and every gradient must agree bit for
// bit, with the gradients of a shared parameter's copies added up.
#include "reference/detach/detach_executor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>

#include <array>
#include <functional>
#include <random>

#include "runtime/capture/pipe_modules.h"
#include "runtime/error.h"
#include "runtime/graph/io/text.h"
#include "runtime/microbatch/signature.h"
#include "runtime/split/loss_mark.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/refusal.h"

namespace plumbline::reference {
namespace {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;
using torch::nn::Linear, torch::nn::MSELoss;

void expect_same(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.defined(), expected.defined()) << what;
  if (!expected.defined()) return;
  EXPECT_TRUE(at::equal(actual, expected)) << what << "\n" << actual << "\n" << expected;
}

int count_nodes(const DetachExecutor& executor, const std::string& name) {
  int count = 0;
  for (const graph::Node& node : executor.root().nodes) count += node.op->operator_name().name == "plumbline::" + name;
  return count;
}

/// The gradient of a parameter: the sum over the stages that have a copy.
at::Tensor gradient_of(const DetachExecutor& executor, int stages, const std::string& name) {
  at::Tensor sum;
  for (int s = 0; s < stages; ++s) {
    const auto copy = executor.state(s).parameters.find(name);
    if (copy == executor.state(s).parameters.end() || !copy->second.grad().defined()) continue;
    sum = sum.defined() ? sum + copy->second.grad() : copy->second.grad();
  }
  return sum;
}

/// Runs the whole model under plain autograd, then its pipe, `runs` times each, and compares all results.
DetachExecutor expect_equal_to_whole(const split::ModelHandle& model, const Tensors& inputs, int loss, int runs = 1,
                                     const split::SplitOptions& options = {}) {
  model.module->train();
  model.module->zero_grad();
  Tensors expected;
  std::map<std::string, at::Tensor> expected_grads;
  Tensors expected_input_grads;
  at::manual_seed(99);
  for (int i = 0; i < runs; ++i) {
    for (const at::Tensor& input : inputs) input.mutable_grad() = at::Tensor();
    expected = model.forward(inputs);
    expected.at(loss).backward();
  }
  for (const auto& item : model.module->named_parameters()) {
    expected_grads[item.key()] = item.value().grad();
    item.value().mutable_grad() = at::Tensor();
  }
  for (const at::Tensor& input : inputs) {
    expected_input_grads.push_back(input.grad());
    input.mutable_grad() = at::Tensor();
  }
  const split::Pipe pipe = split::make_pipe(model, inputs, true, options);
  DetachExecutor executor(pipe, loss);
  Tensors actual;
  at::manual_seed(99);
  for (int i = 0; i < runs; ++i) actual = executor.run(inputs);
  EXPECT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) expect_same(actual[i], expected[i], "output " + std::to_string(i));
  for (const auto& [name, grad] : expected_grads)
    expect_same(gradient_of(executor, pipe.num_stages(), name), grad, "gradient of " + name);
  for (size_t i = 0; i < inputs.size(); ++i) {
    expect_same(executor.input_gradient(static_cast<int>(i)), expected_input_grads[i], "gradient of input");
    EXPECT_FALSE(inputs[i].grad().defined()) << "the inputs are the caller's";
  }
  return executor;
}

/// A module whose forward is a lambda, with the layer "lin" and the parameters "w" and "w2".
struct Code : torch::nn::Module {
  using Body = std::function<Tensors(Code&, const Tensors&)>;
  explicit Code(Body f) : body(std::move(f)) {}
  split::ModelHandle handle(Names names = {"x"}) {
    return {this, [this](const Tensors& in) { return body(*this, in); }, std::move(names)};
  }
  Linear lin = register_module("lin", Linear(8, 8));
  at::Tensor w = register_parameter("w", at::randn({8, 8}));
  at::Tensor w2 = register_parameter("w2", at::randn({8, 8}));
  Body body;
};

TEST(TestIr, LossBackwardSequential) {
  at::manual_seed(1);
  capture::PipeSequential layers;
  Linear first(8, 8);
  layers->push_back(first);
  for (int i = 0; i < 4; ++i) layers->push_back(Linear(8, 8));
  layers->push_back(first);
  capture::TrivialLossWrapper model(layers, MSELoss());
  const split::ModelHandle handle = {
      &model, [&](const Tensors& in) { return Tensors{model.forward(in[0], in[1])}; }, {"x", "target"}};
  const DetachExecutor executor = expect_equal_to_whole(handle, {at::randn({5, 8}), at::zeros({5, 8})}, 0);
  EXPECT_EQ(count_nodes(executor, "call_stage"), 6);
  EXPECT_EQ(count_nodes(executor, "stage_backward"), 6);
  EXPECT_FALSE(executor.state(5).parameters.at("module.0.weight").is_same(first->weight)) << "a copy";
}

/// Two stages share parameters, and a connection skips a stage.
Tensors example(Code& m, const Tensors& in) {
  at::Tensor x = in[0].mm(m.w);
  const at::Tensor skip = x;
  x = x.relu();
  capture::pipe_split();
  x = call(m.lin, x.mm(m.w));
  capture::pipe_split();
  x = call(m.lin, (x.relu() + skip).mm(m.w2));
  return {at::mse_loss(x, in[1])};
}

TEST(TestIr, LossBackwardTracing) {
  at::manual_seed(2);
  Code model(example);
  const DetachExecutor executor = expect_equal_to_whole(model.handle({"x", "target"}),
                                                        {at::randn({5, 8}).requires_grad_(true), at::zeros({5, 8})}, 0);
  EXPECT_EQ(count_nodes(executor, "stage_backward"), 3);
  EXPECT_EQ(count_nodes(executor, "null_coalesce_accumulate"), 0) << "each value that crosses stages has one user";
}

TEST(TestIr, GradAccumulation) {
  at::manual_seed(3);
  at::Tensor shared;
  Code model([&](Code& m, const Tensors& in) {
    const at::Tensor x = call(m.lin, in[0]);
    shared = x;
    capture::pipe_split();
    const at::Tensor y = x.relu();
    capture::pipe_split();
    const at::Tensor z = x.sigmoid();
    capture::pipe_split();
    return Tensors{at::mse_loss(y + z, in[1])};
  });
  const Tensors inputs = {at::randn({5, 8}), at::randn({5, 8})};
  const at::Tensor loss = model.body(model, inputs).at(0);
  const at::Tensor expected = torch::autograd::grad({loss}, {shared}).at(0);
  const split::Pipe pipe = split::make_pipe(model.handle({"x", "target"}), inputs, true, {});
  const DetachExecutor executor = expect_equal_to_whole(model.handle({"x", "target"}), inputs, 0);
  EXPECT_EQ(count_nodes(executor, "null_coalesce_accumulate"), 1);
  const auto it =
      std::ranges::find_if(pipe.boundaries, [](const split::Boundary& b) { return b.consumers.size() == 2; });
  ASSERT_NE(it, pipe.boundaries.end());
  expect_same(executor.boundary_gradient(static_cast<int>(it - pipe.boundaries.begin())), expected, "shared value");
}

TEST(DetachExecutor, GradientsOfSeveralRunsAddUp) {
  at::manual_seed(4);
  // No parameter in two stages: their copies would be summed in a different order than in the whole model.
  Code model([](Code& m, const Tensors& in) {
    const at::Tensor x = call(m.lin, in[0]);
    capture::pipe_split();
    const at::Tensor y = x.mm(m.w);
    capture::pipe_split();
    return Tensors{at::mse_loss(y.relu() + x.mm(m.w2), in[1])};
  });
  expect_equal_to_whole(model.handle({"x", "target"}), {at::randn({5, 8}), at::randn({5, 8})}, 0, 3);
}

TEST(DetachExecutor, StagesDrawAsTheWholeModelDoes) {
  at::manual_seed(5);
  Code model([](Code& m, const Tensors& in) {
    const at::Tensor h = at::dropout(call(m.lin, in[0]), 0.5, true);
    capture::pipe_split();
    return Tensors{at::dropout(h.mm(m.w), 0.3, true).sum()};
  });
  expect_equal_to_whole(model.handle(), {at::randn({5, 8})}, 0);
  split::SplitOptions carried;
  carried.carry_random_state = true;
  expect_equal_to_whole(model.handle(), {at::randn({5, 8})}, 0, 1, carried);
}

TEST(DetachExecutor, TheMarkedOutputIsTheLoss) {
  at::manual_seed(6);
  Code model([](Code& m, const Tensors& in) {
    const at::Tensor out = call(m.lin, in[0]);
    capture::pipe_split();
    const at::Tensor loss = out.mm(m.w).sum();
    capture::pipe_split();
    return Tensors{out.mm(m.w2), loss};
  });
  const graph::OutputTree value = {graph::OutputTree::Kind::Value, 0, "", {}, {}},
                          second = {graph::OutputTree::Kind::Value, 1, "", {}, {}};
  const graph::OutputTree outputs = {graph::OutputTree::Kind::Dict, -1, "", {value, second}, {"out", "loss"}};
  const int loss = split::find_loss(outputs, split::LossMark::dict({{"out", false}, {"loss", true}})).value();
  const DetachExecutor executor = expect_equal_to_whole(model.handle(), {at::randn({5, 8})}, loss);
  EXPECT_EQ(count_nodes(executor, "call_stage"), 3);
  EXPECT_EQ(count_nodes(executor, "stage_backward"), 2) << "the last stage does not contribute to the loss";
}

TEST(DetachExecutor, WhatDoesNotReachTheLossHasNoBackward) {
  at::manual_seed(7);
  Code model([](Code& m, const Tensors& in) {
    const at::Tensor a = in[0].mm(m.w), b = in[0].mm(m.w2), order = in[0].argsort(int64_t{1});
    capture::pipe_split();
    const at::Tensor c = call(m.lin, b);
    capture::pipe_split();
    return Tensors{c.relu(), a.gather(1, order).sum(), at::Tensor(), order};
  });
  const DetachExecutor executor = expect_equal_to_whole(model.handle(), {at::randn({5, 8})}, 1);
  EXPECT_EQ(count_nodes(executor, "stage_backward"), 2) << graph::to_text(executor.root());
  EXPECT_FALSE(executor.state(1).parameters.at("lin.weight").grad().defined());
}

TEST(DetachExecutor, WithoutALossThereIsNoBackward) {
  at::manual_seed(8);
  Code model(example);
  const Tensors inputs = {at::randn({5, 8}), at::randn({5, 8})};
  DetachExecutor executor(split::make_pipe(model.handle({"x", "target"}), inputs, true, {}));
  expect_same(executor.run(inputs).at(0), model.body(model, inputs).at(0), "output");
  EXPECT_EQ(count_nodes(executor, "stage_backward"), 0);
  EXPECT_FALSE(model.w.grad().defined());
  EXPECT_FALSE(executor.input_gradient(0).defined());
}

/// A random program over small whole numbers, for which any order of sums is exact. Some values are used often, some
/// never; some are integers or detached.
struct RandomCode : torch::nn::Module {
  explicit RandomCode(unsigned seed) : seed_(seed) {
    for (int i = 0; i < 4; ++i)
      parameters_.push_back(
          register_parameter("p" + std::to_string(i), at::randint(-2, 3, {4}, at::kDouble), /*requires_grad=*/i != 3));
  }
  Tensors forward(const Tensors& in) {
    std::mt19937 random(seed_);
    Tensors values = in, orders = {in[1].argsort(/*stable=*/true, 0, false)};
    // Prefers a recent value, so that much of the program contributes to the loss.
    const auto any = [&] {
      const size_t size = values.size();
      return values[std::max(random() % size, random() % size)];
    };
    const int length = 6 + static_cast<int>(random() % 18);
    for (int i = 0; i < length; ++i) {
      if (random() % 3 == 0) capture::pipe_split();
      const at::Tensor& p = parameters_[random() % parameters_.size()];
      switch (random() % 8) {
        case 0:
          values.push_back(any() + any());
          break;
        case 1:
          values.push_back(any() * p);
          break;
        case 2:
          values.push_back(any().relu() - p);
          break;
        case 3:
          values.push_back(any().gather(0, orders[random() % orders.size()]));
          break;
        case 4:
          values.push_back(any().detach().neg());
          break;
        case 5:
          orders.push_back(any().argsort(/*stable=*/true, 0, false));
          break;
        case 6:
          values.push_back(any().neg());
          break;
        default:
          values.push_back(any() - any());
      }
    }
    at::Tensor loss = (values.back() * parameters_[0]).sum();
    if (random() % 2) capture::pipe_split();
    for (int i = static_cast<int>(random() % 4); i > 0; --i) loss = loss + any().sum();
    return {any(), loss, at::Tensor(), any().clone()};
  }

 private:
  unsigned seed_;
  Tensors parameters_;
};

TEST(DetachExecutor, AgreesWithTheWholeModelOnRandomPrograms) {
  int several_stages = 0, accumulations = 0, dead_stages = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    at::manual_seed(seed);
    RandomCode model(seed);
    const split::ModelHandle handle = {&model, [&](const Tensors& in) { return model.forward(in); }, {"x", "y"}};
    const Tensors inputs = {at::randint(-2, 3, {4}, at::kDouble).requires_grad_(true),
                            at::randint(-2, 3, {4}, at::kDouble)};
    // The root does not depend on the routes of values and shared parameters.
    split::SplitOptions options;
    options.route = std::array{split::Route::Direct, split::Route::Chain, split::Route::Neighbours}[seed % 3];
    options.multi_use = seed % 2 ? split::MultiUse::Transmit : split::MultiUse::Replicate;
    const DetachExecutor executor = expect_equal_to_whole(handle, inputs, 1, 1, options);
    const int stages = count_nodes(executor, "call_stage");
    several_stages += stages > 1;
    accumulations += count_nodes(executor, "null_coalesce_accumulate");
    dead_stages += stages - count_nodes(executor, "stage_backward");
    ASSERT_FALSE(HasFailure()) << graph::to_text(executor.root());
  }
  EXPECT_GT(several_stages, 250);
  EXPECT_GT(accumulations, 50);
  EXPECT_GT(dead_stages, 50);
}

TEST(DetachExecutor, TakesKeywordInputs) {
  at::manual_seed(9);
  Code model([](Code& m, const Tensors& in) {
    const at::Tensor h = call(m.lin, in[0]);
    capture::pipe_split();
    return Tensors{h * in[1] + in[2]};
  });
  const at::Tensor x = at::randn({5, 8}), scale = at::randn({8}), shift = at::randn({5, 8});
  // def forward(self, x, **extra)
  Names names;
  Tensors inputs;
  for (const capture::NamedTensor& input :
       microbatch::Signature::from_placeholders({"x", "**extra"}).bind({x}, {{"shift", shift}, {"scale", scale}})) {
    names.push_back(input.name);
    inputs.push_back(input.tensor);
  }
  EXPECT_EQ(names, (Names{"x", "scale", "shift"}));
  DetachExecutor executor(split::make_pipe(model.handle(names), inputs, true, {}));
  const at::Tensor expected = model.body(model, inputs).at(0);
  expect_same(executor.run({x}, {{"scale", scale}, {"shift", shift}}).at(0), expected, "by keyword");
  expect_same(executor.run({}, {{"scale", scale}, {"shift", shift}, {"x", x}}).at(0), expected, "all by keyword");
  EXPECT_THROW(executor.run({x}, {{"scale", scale}, {"bias", shift}}), InputError);
}

TEST(DetachExecutor, RefusesOtherInputs) {
  at::manual_seed(10);
  Code model(example);
  const at::Tensor x = at::randn({5, 8});
  DetachExecutor executor(split::make_pipe(model.handle({"x", "target"}), {x, at::randn({5, 8})}, true, {}), 0);
  const auto refusal = [&](const Tensors& inputs) { return testing::refusal([&] { executor.run(inputs); }); };
  EXPECT_EQ(refusal({x, x}), "accepted");
  EXPECT_EQ(refusal({x}), "inputs: 1 given, the pipe was captured with 2");
  EXPECT_EQ(refusal({x, at::Tensor()}), "inputs: 'target' is undefined, the pipe was captured with f32[5,8]");
  EXPECT_EQ(refusal({at::randn({4, 8}), x}), "inputs: 'x' is f32[4,8], the pipe was captured with f32[5,8]");
  EXPECT_EQ(refusal({x, x.to(at::kDouble)}), "inputs: 'target' is f64[5,8], the pipe was captured with f32[5,8]");
  EXPECT_EQ(refusal({x.clone().requires_grad_(true), x}),
            "inputs: 'x' requires a gradient, which it did not when the pipe was captured; capture it so");
}

}  // namespace
}  // namespace plumbline::reference

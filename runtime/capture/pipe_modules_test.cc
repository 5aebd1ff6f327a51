// The oracle is the same computation with plain modules, under plain autograd.
#include "runtime/capture/pipe_modules.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>

#include "runtime/graph/run/program.h"
#include "runtime/split/loss_mark.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::capture {
namespace {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;
using torch::nn::Linear, torch::nn::MSELoss, torch::nn::ReLU, torch::nn::Sequential;

Names child_names(const torch::nn::Module& module) {
  Names names;
  for (const auto& child : module.named_children()) names.push_back(child.key());
  return names;
}

Names parameter_names(const torch::nn::Module& module) {
  Names names;
  for (const auto& parameter : module.named_parameters()) names.push_back(parameter.key());
  return names;
}

split::Pipe pipe_of(PipeSequential& model, const at::Tensor& x) {
  return split::make_pipe({model.get(), [&](const Tensors& in) { return Tensors{model->forward(in[0])}; }, {"x"}}, {x},
                          true, {});
}

/// The stages of a chain, one after the other.
at::Tensor run_chain(const split::Pipe& pipe, const at::Tensor& x) {
  Tensors values = {x};
  for (const split::Stage& stage : pipe.stages) {
    const Tensors inputs = values;
    graph::Program(stage.graph).run(inputs, values);
  }
  return values.at(0);
}

TEST(PipeSequential, EachChildIsAStage) {
  for (int n = 1; n <= 5; ++n) {
    SCOPED_TRACE(n);
    at::manual_seed(n);
    PipeSequential pipe_model;
    Sequential plain;
    for (int i = 0; i < n; ++i) {
      Linear layer(6, 6);
      pipe_model->push_back(layer);
      plain->push_back(layer);
    }
    const at::Tensor x = at::randn({3, 6});
    const split::Pipe pipe = pipe_of(pipe_model, x);
    ASSERT_EQ(pipe.num_stages(), n);
    for (int i = 0; i < n; ++i) {
      const split::StageState state = split::make_stage_state(pipe, i);
      EXPECT_EQ(state.parameters.size(), 2u);
      EXPECT_TRUE(state.parameters.contains(std::to_string(i) + ".weight"));
      ASSERT_EQ(pipe.stages[i].graph.module_calls.size(), 1u);
      EXPECT_EQ(pipe.stages[i].graph.module_calls[0].name, std::to_string(i));
    }
    EXPECT_TRUE(at::equal(pipe_model->forward(x), plain->forward(x)));
    EXPECT_TRUE(at::equal(run_chain(pipe, x), plain->forward(x)));
    EXPECT_EQ(parameter_names(*pipe_model), parameter_names(*plain));
  }
}

TEST(PipeSequential, TakesChildrenOfAnyModuleClass) {
  at::manual_seed(1);
  Linear first(4, 8);
  const auto last = std::make_shared<torch::nn::LinearImpl>(8, 2);
  PipeSequential model(first, ReLU(), last);
  const at::Tensor x = at::randn({3, 4});
  EXPECT_EQ(model->size(), 3u);
  EXPECT_EQ(child_names(*model), (Names{"0", "1", "2"}));
  EXPECT_EQ(pipe_of(model, x).num_stages(), 3);
  EXPECT_TRUE(at::equal(model->forward(x), last->forward(at::relu(first->forward(x)))));
  EXPECT_TRUE(at::equal(PipeSequential()->forward(x), x));
}

TEST(PipeSequential, FromSequentialSharesItsModules) {
  at::manual_seed(2);
  Sequential plain(Linear(4, 4), ReLU(), Linear(4, 3));
  PipeSequential model(PipeSequentialImpl::from_sequential(plain));
  const at::Tensor x = at::randn({2, 4});
  EXPECT_EQ(pipe_of(model, x).num_stages(), 3);
  EXPECT_EQ(parameter_names(*model), parameter_names(*plain));
  for (const auto& parameter : plain->named_parameters())
    EXPECT_TRUE(model->named_parameters()[parameter.key()].is_same(parameter.value()));
  EXPECT_TRUE(at::equal(model->forward(x), plain->forward(x)));
}

TEST(TestIr, TrivialLossWrapper) {
  at::manual_seed(3);
  Sequential model(Linear(4, 4), ReLU(), Linear(4, 2));
  const at::Tensor x = at::randn({3, 4}), target = at::randn({3, 2});
  const at::Tensor expected = at::mse_loss(model->forward(x), target);
  expected.backward();
  Tensors grads;
  for (const at::Tensor& parameter : model->parameters()) grads.push_back(parameter.grad().clone());

  TrivialLossWrapper wrapper(model, MSELoss());
  EXPECT_EQ(child_names(wrapper), (Names{"module", "loss_fn"}));
  EXPECT_EQ(parameter_names(wrapper), (Names{"module.0.weight", "module.0.bias", "module.2.weight", "module.2.bias"}));
  wrapper.zero_grad();
  const at::Tensor loss = wrapper.forward(x, target);
  EXPECT_TRUE(at::equal(loss, expected));
  loss.backward();
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_TRUE(at::equal(model->parameters()[i].grad(), grads[i])) << i;

  EXPECT_TRUE(is_trivial_loss_wrapper(wrapper));
  EXPECT_FALSE(is_trivial_loss_wrapper(*model));
  EXPECT_EQ(
      split::find_loss({graph::OutputTree::Kind::Value, 0, "", {}, {}}, std::nullopt, is_trivial_loss_wrapper(wrapper)),
      0);
}

struct Doubled : LossWrapper<Linear, MSELoss> {
  using LossWrapper::LossWrapper;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& target) { return 2 * loss(call(module, x), target); }
};

struct Forgetful : LossWrapper<Linear, MSELoss> {
  using LossWrapper::LossWrapper;
};

TEST(LossWrapper, ConnectsModelAndLossAsItsForwardSays) {
  at::manual_seed(4);
  Linear model(4, 2);
  const at::Tensor x = at::randn({3, 4}), target = at::randn({3, 2});
  Doubled wrapper(model, MSELoss());
  EXPECT_TRUE(at::equal(wrapper.forward(x, target), 2 * at::mse_loss(model->forward(x), target)));
  EXPECT_FALSE(is_trivial_loss_wrapper(wrapper));
  const graph::Graph graph = capture(wrapper, [&](const Tensors& in) { return Tensors{wrapper.forward(in[0], in[1])}; },
                                     {{"x", x}, {"target", target}});
  ASSERT_EQ(graph.module_calls.size(), 2u);
  EXPECT_EQ(graph.module_calls[0].name, "module");
  EXPECT_EQ(graph.module_calls[1].name, "loss_fn");
}

TEST(LossWrapper, WithoutAForwardItRefuses) {
  Forgetful wrapper(Linear(2, 2), MSELoss());
  try {
    wrapper.forward(at::randn({1, 2}), at::randn({1, 2}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "LossWrapper: this class has no forward() of its own; write one that calls module and loss and returns "
        "the loss");
  }
}

TEST(TestIr, LossIsAFunction) {
  at::manual_seed(5);
  Linear model(4, 2);
  const at::Tensor x = at::randn({3, 4}), target = at::randn({3, 2});
  TrivialLossWrapper wrapper(model, [](const at::Tensor& out, const at::Tensor& t) { return (out - t).pow(2).mean(); });
  EXPECT_EQ(child_names(wrapper), Names{"module"});
  EXPECT_TRUE(is_trivial_loss_wrapper(wrapper));
  EXPECT_TRUE(at::equal(wrapper.forward(x, target), (model->forward(x) - target).pow(2).mean()));
}

}  // namespace
}  // namespace plumbline::capture

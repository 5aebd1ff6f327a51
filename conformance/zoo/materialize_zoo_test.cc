#include "runtime/split/materialize.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <ranges>

#include "reference/models/zoo.h"
#include "reference/named_tensors.h"
#include "reference/testing/whole_batch.h"
#include "runtime/capture/capture.h"
#include "runtime/capture/meta/meta_device.h"
#include "runtime/capture/testing/meta_graphs.h"
#include "runtime/error.h"
#include "runtime/graph/run/program.h"
#include "runtime/split/split.h"
#include "runtime/testing/parameter_name.h"
#include "runtime/testing/refusal.h"

namespace plumbline::split {
namespace {

using testing::meta_like;
using Tensors = std::vector<at::Tensor>;

void move_constants_to_cpu(graph::Graph& graph) {
  for (graph::Node& node : graph.nodes)
    for (graph::Argument& argument : node.arguments)
      if (argument.constant.isDevice() && argument.constant.toDevice().is_meta())
        argument.constant = c10::Device(at::kCPU);
}

/// A model of the zoo, constructed, captured and split without memory.
Pipe pipe_on_meta(const std::string& name, const Tensors& inputs) {
  models::Model model;
  {
    const capture::MetaDeviceScope on_meta;
    model = models::make_model(name, reference::Dtype::F32, 5);
  }
  std::vector<capture::NamedTensor> named;
  for (size_t i = 0; i < inputs.size(); ++i) named.push_back({model.input_names[i], meta_like(inputs[i])});
  return split(capture::capture(*model.module, model.forward, named),
               {choose_split_points(model.split_points, 3), std::nullopt});
}

/// Runs one stage after the other under one autograd graph.
Tensors run(Pipe& pipe, const std::vector<StageState>& states, const Tensors& inputs) {
  std::map<int, at::Tensor> crossing;
  Tensors outputs;
  for (int s = 0; s < pipe.num_stages(); ++s) {
    Stage& stage = pipe.stages[s];
    move_constants_to_cpu(stage.graph);
    bind(stage.graph, states[s]);
    Tensors given = inputs;
    if (s > 0) given.clear();
    for (int boundary : stage.inputs) given.push_back(crossing.at(boundary));
    graph::Program(stage.graph).run(given, outputs);
    for (int boundary : stage.outputs) crossing[boundary] = outputs.at(pipe.boundaries[boundary].output);
  }
  return outputs;
}

void backward(const Tensors& outputs) {
  Tensors roots, weights;
  for (const at::Tensor& output : outputs)
    if (output.requires_grad()) {
      roots.push_back(output);
      // Whole numbers, -1, 0, 1 and again: exact models stay exact in any order of summing a parameter's copies.
      weights.push_back((at::arange(output.numel()).remainder(3) - 1).to(output.scalar_type()).view(output.sizes()));
    }
  torch::autograd::backward(roots, weights);
}

class Materialize : public ::testing::TestWithParam<std::string> {};

TEST_P(Materialize, StagesCapturedOnMetaComputeTheModelsResults) {
  const models::Model model = models::make_model(GetParam(), reference::Dtype::F32, 5);
  const Tensors inputs = testing::whole_batch(GetParam(), reference::Dtype::F32, 4, 5).inputs;
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : model.module->named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : model.module->named_buffers()) tensors[item.key()] = item.value();

  Pipe pipe = pipe_on_meta(GetParam(), inputs);
  std::vector<StageState> states;
  for (int s = 0; s < pipe.num_stages(); ++s)
    states.push_back(
        make_stage_state(pipe, s, [&](const graph::Attribute& a) { return tensors.at(a.name).detach().clone(); }));

  at::manual_seed(9);
  const Tensors theirs = model.forward(inputs);
  backward(theirs);
  at::manual_seed(9);
  const Tensors ours = run(pipe, states, inputs);
  backward(ours);

  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << "output " << i;
    EXPECT_TRUE(!ours[i].defined() || at::equal(ours[i], theirs[i])) << "output " << i;
  }
  std::map<std::string, at::Tensor> gradients;
  for (const StageState& state : states | std::views::reverse) {  // autograd reaches the last use first
    for (const auto& [name, parameter] : state.parameters) {
      EXPECT_EQ(parameter.requires_grad(), tensors.at(name).requires_grad()) << name;
      if (!parameter.grad().defined()) continue;
      at::Tensor& sum = gradients[name];
      sum = sum.defined() ? sum + parameter.grad() : parameter.grad();
    }
    for (const auto& [name, buffer] : state.buffers) EXPECT_TRUE(at::equal(buffer, tensors.at(name))) << name;
  }
  int compared = 0;
  for (const auto& [name, parameter] : reference::first_names(model.module->named_parameters())) {
    const at::Tensor& expected = parameter.grad();
    ASSERT_EQ(gradients.contains(name), expected.defined()) << name;
    if (!expected.defined()) continue;
    EXPECT_TRUE(at::equal(gradients.at(name), expected)) << name;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Materialize, ::testing::ValuesIn(models::model_names()), testing::ParameterName());

std::string refusal(const Pipe& pipe, const MakeTensor& make) {
  return testing::refusal([&] { make_stage_state(pipe, 0, make); });
}

TEST(MaterializeErrors, NameTheTensor) {
  const Pipe pipe = pipe_on_meta("mlp", models::make_batch("mlp", reference::Dtype::F32, 4, 5, 0).inputs);
  const std::string what = "split: stage 0 needs 'layers.0.fc.weight' as f32[32,32]; the tensor made for it is ";
  EXPECT_EQ(refusal(pipe, [](const graph::Attribute&) { return at::Tensor(); }), what + "undefined");
  EXPECT_EQ(refusal(pipe, [](const graph::Attribute&) { return at::zeros({2}); }), what + "f32[2]");
  EXPECT_EQ(refusal(pipe, [](const graph::Attribute& a) { return a.tensor; }),
            what + "on the meta device, without memory");
  const StageState unset = make_stage_state(pipe, 0, MakeTensor());
  EXPECT_TRUE(unset.parameters.at("layers.0.fc.weight").is_cpu());
  EXPECT_TRUE(unset.parameters.at("layers.0.fc.weight").requires_grad());
}

}  // namespace
}  // namespace plumbline::split

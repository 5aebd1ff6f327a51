// The models of the tests named after those of PyTorch's torch.distributed.pipelining and of PiPPy (model_registry.py
// and the test files themselves), and the comparison that all of these tests make: a pipe against its model.
//
// The oracle is the uncut model under plain autograd. A pipe is run in two ways that share no code: by DetachExecutor,
// and as graphs, one BoundStage after the other, where this file moves values and gradients.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reference/detach/detach_executor.h"
#include "runtime/capture/call.h"
#include "runtime/graph/run/program.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/refusal.h"

namespace plumbline::upstream {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;
using torch::nn::Linear, torch::nn::Module;

/// A weight for mm(), with variance 1/d so that deep models stay in range.
inline at::Tensor mm_weight(int64_t d) { return at::randn({d, d}) / std::sqrt(static_cast<double>(d)); }

/// Two to eight stages; the clone of a buffer, which requires no gradient, crosses the first border.
struct ExampleCode : Module {
  ExampleCode(int64_t d, int stages) : stages_(stages) {
    mm_param0 = register_parameter("mm_param0", mm_weight(d));
    mm_param1 = register_parameter("mm_param1", mm_weight(d));
    cval = register_buffer("cval", at::randn({d}));
    for (int i = 0; i < 7; ++i) lin.push_back(register_module("lin" + std::to_string(i), Linear(d, d)));
  }
  Tensors forward(const Tensors& in) {
    at::Tensor x = in[0].mm(mm_param0).relu();
    const at::Tensor constant = cval.clone();
    x = capture::call(lin[0], x);
    capture::pipe_split();
    x = (x.relu() + constant).mm(mm_param1);
    for (int i = 1; i + 1 < stages_; ++i) {
      capture::pipe_split();
      x = capture::call(lin[i], x).relu();
    }
    return {x};
  }
  static Names names() { return {"x"}; }
  at::Tensor mm_param0, mm_param1, cval;
  std::vector<Linear> lin;

 private:
  int stages_;
};

/// Two to eight stages, and a second input that is passed by name.
struct ModelWithKwargs : Module {
  ModelWithKwargs(int64_t d, int stages) : stages_(stages) {
    mm_param0 = register_parameter("mm_param0", mm_weight(d));
    mm_param1 = register_parameter("mm_param1", mm_weight(d));
    for (int i = 0; i < 8; ++i) lin.push_back(register_module("lin" + std::to_string(i), Linear(d, d)));
  }
  Tensors forward(const Tensors& in) {
    at::Tensor x = capture::call(lin[0], in[0].mm(mm_param0) + in[1]).relu();
    capture::pipe_split();
    x = capture::call(lin[1], x.mm(mm_param1)).relu();
    for (int i = 2; i < stages_; ++i) {
      capture::pipe_split();
      x = capture::call(lin[i], x).relu();
    }
    return {x};
  }
  static Names names() { return {"x", "y"}; }
  at::Tensor mm_param0, mm_param1;
  std::vector<Linear> lin;

 private:
  int stages_;
};

/// Every tensor has two names; the second stage uses the second ones.
struct ModelWithParamAlias : Module {
  explicit ModelWithParamAlias(int64_t d) : lin(d, d) {
    mm_param = register_parameter("mm_param0", mm_weight(d));
    register_parameter("mm_param1", mm_param);
    register_module("lin0", lin);
    register_module("lin1", lin);
  }
  Tensors forward(const Tensors& in) {
    const at::Tensor x = capture::call(lin, in[0].mm(mm_param) + in[1]).relu();
    capture::pipe_split();
    return {capture::call(lin, x.mm(mm_param)).relu()};
  }
  static Names names() { return {"x", "y"}; }
  at::Tensor mm_param;
  Linear lin;
};

struct Mlp : Module {
  explicit Mlp(int64_t d) : net1(register_module("net1", Linear(d, d))), net2(register_module("net2", Linear(d, d))) {}
  at::Tensor forward(const at::Tensor& x) { return capture::call(net2, capture::call(net1, x).relu()); }
  Linear net1, net2;
};

/// Layers in sequence, without markers.
struct MultiMlp : Module {
  MultiMlp(int64_t d, int count) {
    for (int i = 0; i < count; ++i) layers->push_back(std::make_shared<Mlp>(d));
    register_module("layers", layers);
  }
  Tensors forward(const Tensors& in) {
    at::Tensor x = in[0];
    for (const auto& layer : *layers) {
      const std::shared_ptr<Mlp> mlp = std::dynamic_pointer_cast<Mlp>(layer);
      x = capture::call(mlp, x);
    }
    return {x};
  }
  static Names names() { return {"x"}; }
  torch::nn::ModuleList layers;
};

/// Each block contains a marker, and directly after it modifies the value from the previous stage in place.
struct Nested : Module {
  struct Block : Module {
    Block(int64_t channels, int64_t width)
        : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels, 3).padding(1)))),
          lin0(register_module("lin0", Linear(width, width))),
          lin1(register_module("lin1", Linear(width, width))) {}
    at::Tensor forward(at::Tensor x, const at::Tensor& constant) {
      x = capture::call(lin0, capture::call(conv, x));
      capture::pipe_split();
      x.add_(constant);
      return capture::call(lin1, x).relu();
    }
    torch::nn::Conv2d conv;
    Linear lin0, lin1;
  };
  Nested(int64_t channels, int64_t width)
      : block0(register_module("block0", std::make_shared<Block>(channels, width))),
        block1(register_module("block1", std::make_shared<Block>(channels, width))) {}
  Tensors forward(const Tensors& in) {
    const at::Tensor x = capture::call(block0, in[0], in[1]);
    capture::pipe_split();
    return {capture::call(block1, x, in[1])};
  }
  static Names names() { return {"x", "constant"}; }
  std::shared_ptr<Block> block0, block1;
};

template <class Model>
split::ModelHandle handle(Model& model, Names names = Model::names()) {
  return {&model, [&model](const Tensors& in) { return model.forward(in); }, std::move(names)};
}

/// The model with the mean square of its first output as an additional last output: the loss.
inline split::ModelHandle with_loss(const split::ModelHandle& model) {
  split::ModelHandle result = model;
  result.forward = [forward = model.forward](const Tensors& in) {
    Tensors out = forward(in);
    out.push_back(out[0].square().mean());
    return out;
  };
  return result;
}

inline void expect_same(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.defined(), expected.defined()) << what;
  if (!expected.defined()) return;
  EXPECT_TRUE(at::equal(actual, expected)) << what << "\n" << actual << "\n" << expected;
}

/// The results of a run of a model or of its pipe. Parameter gradients are under canonical names.
struct Outcome {
  Tensors outputs, input_gradients;
  std::map<std::string, at::Tensor> gradients;
};

inline void expect_same(const Outcome& actual, const Outcome& expected) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < expected.outputs.size(); ++i)
    expect_same(actual.outputs[i], expected.outputs[i], "output " + std::to_string(i));
  for (size_t i = 0; i < expected.input_gradients.size(); ++i)
    expect_same(actual.input_gradients[i], expected.input_gradients[i], "gradient of input " + std::to_string(i));
  for (const auto& [name, gradient] : actual.gradients)
    expect_same(gradient, expected.gradients.at(name), "gradient of " + name);
}

/// Fresh leaves, so that each run has separate gradients.
inline Tensors fresh(const Tensors& inputs) {
  Tensors leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.detach().requires_grad_(input.requires_grad()));
  return leaves;
}

/// The uncut model and its backward from the last output; gradients under all names of each parameter.
inline Outcome run_whole(const split::ModelHandle& model, const Tensors& inputs) {
  Outcome outcome;
  const Tensors leaves = fresh(inputs);
  model.module->zero_grad();
  outcome.outputs = model.forward(leaves);
  outcome.outputs.back().backward();
  for (const at::Tensor& leaf : leaves) outcome.input_gradients.push_back(leaf.grad());
  for (const auto& item : model.module->named_parameters()) outcome.gradients[item.key()] = item.value().grad();
  model.module->zero_grad();
  return outcome;
}

inline void add_up(at::Tensor& sum, const at::Tensor& more) {
  if (more.defined()) sum = sum.defined() ? sum + more : more;
}

/// Adds the gradients of one stage's parameters to those in `outcome`.
inline void add_gradients(Outcome& outcome, const split::StageState& state) {
  for (const auto& [name, parameter] : state.parameters) add_up(outcome.gradients[name], parameter.grad());
}

/// One stage of a pipe with its own tensors.
class BoundStage {
 public:
  BoundStage(const split::Pipe& pipe, int stage)
      : state_(split::make_stage_state(pipe, stage)), graph_(std::make_unique<graph::Graph>(pipe.stages[stage].graph)) {
    split::bind(*graph_, state_);
    program_ = std::make_unique<graph::Program>(*graph_);
  }
  Tensors forward(const Tensors& inputs) {
    Tensors outputs;
    program_->run(inputs, outputs);
    return outputs;
  }
  const split::StageState& state() const { return state_; }
  std::map<std::string, at::Tensor> state_dict() const { return split::state_dict(*graph_, state_); }

 private:
  split::StageState state_;
  std::unique_ptr<graph::Graph> graph_;
  std::unique_ptr<graph::Program> program_;
};

inline std::vector<BoundStage> bound_stages(const split::Pipe& pipe) {
  std::vector<BoundStage> stages;
  for (int s = 0; s < pipe.num_stages(); ++s) stages.emplace_back(pipe, s);
  return stages;
}

/// Runs the stages in sequence and their backwards in reverse; without `backward`, forward only.
inline Outcome run_stages(const split::Pipe& pipe, std::vector<BoundStage>& stages, const Tensors& inputs,
                          bool backward) {
  const size_t count = stages.size();
  std::vector<Tensors> in(count), out(count);
  in[0] = fresh(inputs);
  for (size_t s = 0; s < count; ++s) {
    for (const int b : pipe.stages[s].inputs) {
      const split::Boundary& boundary = pipe.boundaries[b];
      const at::Tensor& value = out[boundary.producer][boundary.output];
      in[s].push_back(value.detach().requires_grad_(boundary.value.requires_grad));
    }
    out[s] = stages[s].forward(in[s]);
  }
  Outcome outcome;
  outcome.outputs = out.back();
  if (!backward) return outcome;
  for (size_t s = count; s-- > 0;) {
    Tensors roots, gradients;
    if (s + 1 == count) {
      roots = {out[s].back()};
      gradients = {at::Tensor()};
    }
    for (const int b : pipe.stages[s].outputs) {
      const split::Boundary& boundary = pipe.boundaries[b];
      at::Tensor gradient;
      for (const auto& consumer : boundary.consumers) add_up(gradient, in[consumer.stage][consumer.input].grad());
      EXPECT_TRUE(boundary.has_gradient || !gradient.defined()) << boundary.name;
      if (!gradient.defined()) continue;
      roots.push_back(out[s][boundary.output]);
      gradients.push_back(gradient);
    }
    torch::autograd::backward(roots, gradients);
    add_gradients(outcome, stages[s].state());
  }
  for (const at::Tensor& input : in[0]) outcome.input_gradients.push_back(input.grad());
  return outcome;
}

/// Checks names and tensors: each stage's state is the model's, all stages together hold all of the model's, and only
/// the copies of shared tensors are not the model's own tensors. `absent`: the non-persistent buffers.
inline void expect_state_is_models(const split::Pipe& pipe, const Module& model,
                                   const std::set<std::string>& absent = {}) {
  std::map<std::string, at::Tensor> expected;
  for (const auto& tensors : {model.named_parameters(), model.named_buffers()})
    for (const auto& item : tensors)
      if (!absent.contains(item.key())) expected[item.key()] = item.value();
  std::map<std::string, std::set<const void*>> memory;
  for (int s = 0; s < pipe.num_stages(); ++s)
    for (const auto& [name, tensor] : BoundStage(pipe, s).state_dict()) {
      ASSERT_TRUE(expected.contains(name)) << name << " of stage " << s << " is not the model's";
      EXPECT_EQ(tensor.is_same(expected[name]), memory[name].empty()) << name << " of stage " << s;
      EXPECT_TRUE(at::equal(tensor, expected[name])) << name;
      EXPECT_EQ(tensor.requires_grad(), expected[name].requires_grad()) << name;
      EXPECT_TRUE(memory[name].insert(tensor.data_ptr()).second) << name << ": two stages share its memory";
    }
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(memory.contains(name)) << name << " is in no stage";
}

/// Checks everything that holds for every pipe, bit for bit: state, outputs, and every gradient. `model` includes
/// with_loss().
inline void expect_equal(const split::Pipe& pipe, const split::ModelHandle& model, const Tensors& inputs,
                         const std::set<std::string>& absent = {}) {
  expect_state_is_models(pipe, *model.module, absent);
  const Outcome expected = run_whole(model, inputs);
  {
    SCOPED_TRACE("BoundStages");
    std::vector<BoundStage> stages = bound_stages(pipe);
    expect_same(run_stages(pipe, stages, inputs, true), expected);
  }
  SCOPED_TRACE("DetachExecutor");
  model.module->zero_grad();
  reference::DetachExecutor executor(pipe, static_cast<int>(expected.outputs.size()) - 1);
  Outcome outcome;
  outcome.outputs = executor.run(fresh(inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor gradient = executor.input_gradient(static_cast<int>(i));
    outcome.input_gradients.push_back(inputs[i].requires_grad() ? gradient : at::Tensor());
  }
  for (int s = 0; s < pipe.num_stages(); ++s) add_gradients(outcome, executor.state(s));
  expect_same(outcome, expected);
  model.module->zero_grad();
}

/// The parameters that stages share, as "name: 0 1".
inline Names shared_text(const split::Pipe& pipe) {
  Names texts;
  for (const split::SharedParameter& shared : pipe.shared) {
    std::string text = shared.name + ":";
    for (const int stage : shared.stages) text += " " + std::to_string(stage);
    texts.push_back(text);
  }
  std::ranges::sort(texts);
  return texts;
}

}  // namespace plumbline::upstream

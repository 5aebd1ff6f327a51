#include "runtime/split/measure/node_alone.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/graph/as_captured.h"
#include "runtime/graph/run/boxed_arguments.h"
#include "runtime/graph/run/kept_tensors.h"
#include "runtime/graph/run/random_turn.h"

namespace plumbline::split {
namespace {

/// Captures the values that the single node of a program defines, including numbers, which are no outputs.
class Grab : public graph::NodeObserver {
 public:
  explicit Grab(std::function<void(const graph::Frame&)> grab) : grab_(std::move(grab)) {}
  void before(size_t, const graph::Frame&) override {}
  void after(size_t, const graph::Frame& values) override { grab_(values); }

 private:
  std::function<void(const graph::Frame&)> grab_;
};

void check(const graph::Graph& graph, const std::vector<at::Tensor>& inputs) {
  if (const std::string why = graph::why_not_runnable(graph, inputs); !why.empty())
    throw InputError("split: to measure: " + why);
}

}  // namespace

NodeAlone::NodeAlone(const graph::Graph& graph, size_t index, const std::vector<c10::IValue>& values) {
  graph::Node node = graph.nodes[index];
  std::set<graph::ValueId> written;
  graph::for_each_mutation(node, [&](graph::ValueId v) { written.insert(v); });
  std::unordered_map<graph::ValueId, graph::ValueId> local;
  const auto renumber = [&](graph::ValueId v) {
    const auto [it, inserted] = local.emplace(v, graph::kNoValue);
    if (inserted) it->second = alone_.add_value(graph.values[v]);
    return it->second;
  };
  const auto operand = [&](graph::ValueId v) {
    if (local.contains(v)) return local[v];
    alone_.inputs.push_back({"", renumber(v)});
    const c10::IValue& value = values[v];
    operands_.push_back(value.isTensor() ? value.toTensor() : at::scalar_tensor(value.toScalar()));
    if (!operands_.back().defined()) return detached_.emplace_back(), local[v];
    const bool gradient = graph.values[v].requires_grad && node.grad_enabled;
    at::Tensor detached = operands_.back().detach();
    if (gradient) detached.requires_grad_();
    if (written.contains(v)) {
      const c10::AutoGradMode recording(gradient);
      detached = detached.clone();
    }
    detached_.push_back(detached);
    return local[v];
  };
  for (graph::Argument& argument : node.arguments) {
    const bool is_number = argument.kind == graph::Argument::Kind::Value && !values[argument.values[0]].isTensor();
    if (is_number && node.branches.empty()) {  // (the predicate of a cond may as well be a tensor)
      argument = {graph::Argument::Kind::Constant, values[argument.values[0]], {}};
    } else if (argument.kind == graph::Argument::Kind::NumberList) {
      const auto value = [&](graph::ValueId v) { return values[v]; };
      argument = {graph::Argument::Kind::Constant,
                  graph::boxed_list(argument.kind, argument.constant, argument.values, value),
                  {}};
    } else {
      for (graph::ValueId& v : argument.values)
        if (v != graph::kNoValue) v = operand(v);
    }
  }
  for (graph::Result& result : node.results) {
    for (graph::ValueId& v : result.values) {
      if (v == graph::kNoValue) continue;
      definitions_.push_back({v, renumber(v)});
      v = definitions_.back().local;
    }
  }
  alone_.autocast = graph.autocast;
  alone_.nodes.push_back(std::move(node));
  program_.emplace(alone_);
}

void NodeAlone::forward() {
  roots_.clear();
  const auto add_root = [&](const at::Tensor& tensor) {
    const bool is_new = std::none_of(roots_.begin(), roots_.end(), [&](auto& root) { return root.is_same(tensor); });
    if (tensor.defined() && tensor.requires_grad() && is_new) roots_.push_back(tensor);
  };
  Grab grab([&](const graph::Frame& values) {
    for (const Definition& definition : definitions_)
      if (values.value(definition.local).isTensor()) add_root(values.value(definition.local).toTensor());
  });
  const c10::AutoGradMode recording(true);
  std::vector<at::Tensor> none;
  program_->run(detached_, none, &grab);
}

std::vector<at::Tensor> NodeAlone::ones() const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& root : roots_) gradients.push_back(at::ones_like(root));
  return gradients;
}

void NodeAlone::backward(const std::vector<at::Tensor>& gradients) {
  if (roots_.empty()) return;
  torch::autograd::backward(roots_, gradients);
  roots_.clear();
}

void NodeAlone::run(std::vector<c10::IValue>& values) {
  Grab grab([&](const graph::Frame& results) {
    for (const Definition& definition : definitions_) values[definition.value] = results.value(definition.local);
  });
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> none;
  program_->run(operands_, none, &grab);
}

void for_each_node_alone(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                         const std::function<void(size_t node, NodeAlone&)>& visit) {
  check(graph, inputs);
  const graph::RandomTurn generator_kept;
  graph::KeptTensors kept(graph, inputs);
  std::vector<c10::IValue> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i].value] = inputs[i].detach();
  for (const graph::Attribute& attribute : graph.attributes)
    if (attribute.value != graph::kNoValue) values[attribute.value] = attribute.tensor;
  std::vector<size_t> last_use(graph.values.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    graph::for_each_use(graph.nodes[i], [&](graph::ValueId v) { last_use[v] = i; });
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].is_split()) continue;
    NodeAlone alone(graph, i, values);
    visit(i, alone);
    graph::for_each_mutation(graph.nodes[i], [&](graph::ValueId v) { kept.before_write(values[v]); });
    alone.run(values);
    graph::for_each_use(graph.nodes[i], [&](graph::ValueId v) {
      if (last_use[v] == i) values[v] = c10::IValue();
    });
  }
}

}  // namespace plumbline::split

#include "reference/detach/detach_executor.h"

#include <torch/csrc/autograd/autograd.h>

#include "reference/detach/root_graph.h"
#include "reference/sum_of.h"
#include "runtime/error.h"
#include "runtime/graph/as_captured.h"
#include "runtime/microbatch/signature.h"

namespace plumbline::reference {

DetachExecutor::DetachExecutor(const split::Pipe& pipe, std::optional<int> loss_output)
    : root_(root_graph(pipe, loss_output)) {
  for (int stage = 0; stage < pipe.num_stages(); ++stage) {
    states_.push_back(split::make_stage_state(pipe, stage));
    graph::Graph graph = pipe.stages[stage].graph;
    split::bind(graph, states_.back());
    stages_.emplace_back(graph::Program(graph));
  }
  // The first nodes of the root call the stages in order.
  for (const split::Boundary& boundary : pipe.boundaries) {
    const split::Boundary::Consumer& taker = boundary.consumers.front();
    boundary_values_.push_back(root_.nodes[taker.stage].arguments[1].values[taker.input]);
  }
}

std::vector<at::Tensor> DetachExecutor::run(const std::vector<at::Tensor>& positional,
                                            const std::map<std::string, at::Tensor>& keyword) {
  microbatch::Signature signature;
  for (const graph::GraphInput& input : root_.inputs) signature.parameters.push_back({input.name});
  std::vector<at::Tensor> inputs;
  for (const capture::NamedTensor& input : signature.bind(positional, keyword)) inputs.push_back(input.tensor);
  return run(inputs);
}

std::vector<at::Tensor> DetachExecutor::run(const std::vector<at::Tensor>& inputs) {
  check(inputs);
  values_.assign(root_.values.size(), {});
  leaves_ = gradients_ = values_;
  for (size_t i = 0; i < inputs.size(); ++i) values_[root_.inputs[i].value] = inputs[i];
  for (const graph::Node& node : root_.nodes) {
    const std::string& name = node.op->operator_name().name;
    if (name == "plumbline::call_stage")
      call_stage(node);
    else if (name == "plumbline::stage_backward")
      stage_backward(node);
    else
      accumulate(node);
  }
  std::vector<at::Tensor> outputs;
  for (graph::ValueId v : root_.outputs) outputs.push_back(v == graph::kNoValue ? at::Tensor() : values_[v]);
  values_.clear();
  leaves_.clear();
  separate_gradients();
  return outputs;
}

at::Tensor DetachExecutor::input_gradient(int input) const {
  return gradients_.empty() ? at::Tensor() : gradients_.at(root_.inputs.at(input).value);
}

at::Tensor DetachExecutor::boundary_gradient(int boundary) const {
  return gradients_.empty() ? at::Tensor() : gradients_.at(boundary_values_.at(boundary));
}

void DetachExecutor::check(const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != root_.inputs.size())
    throw InputError("inputs: " + std::to_string(inputs.size()) + " given, the pipe was captured with " +
                     std::to_string(root_.inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::Value& captured = root_.values[root_.inputs[i].value];
    const std::string name = "inputs: '" + root_.inputs[i].name + "' ";
    if (!graph::is_as_captured(inputs[i], captured))
      throw InputError(name + "is " + graph::describe(inputs[i]) + ", the pipe was captured with " +
                       graph::describe(captured.dtype, captured.sizes));
    if (inputs[i].requires_grad() && !captured.requires_grad)
      throw InputError(name + "requires a gradient, which it did not when the pipe was captured; capture it so");
  }
}

/// The leaf that replaces a value in all stages that take it.
const at::Tensor& DetachExecutor::leaf(graph::ValueId v) {
  if (!values_[v].requires_grad()) return values_[v];
  if (!leaves_[v].defined()) leaves_[v] = values_[v].detach().requires_grad_(true);
  return leaves_[v];
}

void DetachExecutor::call_stage(const graph::Node& node) {
  std::vector<at::Tensor> inputs, outputs;
  for (graph::ValueId v : node.arguments[1].values) inputs.push_back(leaf(v));
  stages_[node.arguments[0].constant.toInt()].run(inputs, outputs);
  const std::vector<graph::ValueId>& results = node.results[0].values;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] != graph::kNoValue) values_[results[i]] = outputs[i];
}

void DetachExecutor::stage_backward(const graph::Node& node) {
  const std::vector<graph::ValueId>& outputs = node.arguments[0].values;
  const std::vector<graph::ValueId>& output_grads = node.arguments[1].values;
  const std::vector<graph::ValueId>& inputs = node.arguments[2].values;
  std::vector<at::Tensor> roots, root_grads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_loss = output_grads[i] == graph::kNoValue;
    const at::Tensor grad = is_loss ? at::Tensor() : values_[output_grads[i]];
    if (!values_[outputs[i]].requires_grad() || (!is_loss && !grad.defined())) continue;
    roots.push_back(values_[outputs[i]]);
    root_grads.push_back(grad);
  }
  if (!roots.empty()) torch::autograd::backward(roots, root_grads);
  const std::vector<graph::ValueId>& results = node.results[0].values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (results[i] == graph::kNoValue || !leaves_[inputs[i]].defined()) continue;
    const at::Tensor grad = leaves_[inputs[i]].grad();
    leaves_[inputs[i]].mutable_grad() = at::Tensor();
    values_[results[i]] = grad;
    gradients_[inputs[i]] = sum_of(gradients_[inputs[i]], grad);
  }
}

/// Clones gradients whose storage is shared: the next run's backward adds in place to this run's gradients (sum_of.h).
void DetachExecutor::separate_gradients() {
  for (const split::StageState& state : states_)
    for (const auto& [name, parameter] : state.parameters) {
      at::Tensor& grad = parameter.mutable_grad();
      if (grad.defined() && grad.storage().use_count() > 1) grad = grad.clone();
    }
}

void DetachExecutor::accumulate(const graph::Node& node) {
  values_[node.results[0].values[0]] =
      sum_of(values_[node.arguments[0].values[0]], values_[node.arguments[1].values[0]]);
}

}  // namespace plumbline::reference

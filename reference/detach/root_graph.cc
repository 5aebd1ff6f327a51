#include "reference/detach/root_graph.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/graph/gradient_reach.h"

namespace plumbline::reference {
namespace {

c10::OperatorHandle root_operator(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

graph::Argument list(std::vector<graph::ValueId> values,
                     graph::Argument::Kind kind = graph::Argument::Kind::TensorList) {
  return {kind, {}, std::move(values)};
}

class Builder {
 public:
  explicit Builder(const split::Pipe& pipe)
      : pipe_(pipe), boundary_values_(pipe.boundaries.size(), graph::kNoValue), of_local_(pipe.stages.size()) {
    for (const graph::GraphInput& input : pipe.stages[0].graph.inputs)
      root_.inputs.push_back({input.name, root_.add_value(pipe.stages[0].graph.values[input.value])});
  }

  void add_forward() {
    for (int stage = 0; stage < pipe_.num_stages(); ++stage) add_call(stage);
    const int last = pipe_.num_stages() - 1;
    for (graph::ValueId v : pipe_.stages[last].graph.outputs)
      root_.outputs.push_back(v == graph::kNoValue ? graph::kNoValue : of_local_[last].at(v));
  }

  void add_backward(int loss_output) {
    loss_ = checked_loss(loss_output);
    for (int stage = pipe_.num_stages() - 1; stage >= 0; --stage) add_stage_backward(stage);
  }

  graph::Graph finish() {
    graph::verify(root_);
    return std::move(root_);
  }

 private:
  void add_call(int stage) {
    const split::Stage& part = pipe_.stages[stage];
    auto& of_local = of_local_[stage];
    std::vector<graph::ValueId> inputs;
    for (size_t i = 0; i < part.graph.inputs.size(); ++i) {
      inputs.push_back(stage == 0 ? root_.inputs[i].value : boundary_values_[part.inputs[i]]);
      of_local.emplace(part.graph.inputs[i].value, inputs.back());
    }
    graph::Result result{true, {}};
    for (graph::ValueId v : part.graph.outputs) {
      const bool is_new = v != graph::kNoValue && !of_local.contains(v);
      if (is_new) of_local.emplace(v, root_.add_value(part.graph.values[v]));
      result.values.push_back(is_new ? of_local.at(v) : graph::kNoValue);
    }
    for (size_t b = 0; b < pipe_.boundaries.size(); ++b)
      if (pipe_.boundaries[b].producer == stage)
        boundary_values_[b] = of_local.at(part.graph.outputs[pipe_.boundaries[b].output]);
    graph::Argument number{graph::Argument::Kind::Constant, static_cast<int64_t>(stage), {}};
    root_.nodes.push_back({call_stage_, {std::move(number), list(std::move(inputs))}, {std::move(result)}});
  }

  graph::ValueId checked_loss(int output) const {
    const std::string what = "loss: output " + std::to_string(output) + " of the model ";
    if (output < 0 || output >= static_cast<int>(root_.outputs.size()))
      throw InputError(what + "does not exist; it has " + std::to_string(root_.outputs.size()) + " outputs");
    const graph::ValueId v = root_.outputs[output];
    const std::string accepted = "; a loss is one number that requires a gradient";
    if (v == graph::kNoValue) throw InputError(what + "is None" + accepted);
    const graph::Value& value = root_.values[v];
    const bool is_one = std::ranges::all_of(value.sizes, [](int64_t size) { return size == 1; });
    if (!is_one || !value.requires_grad)
      throw InputError(what + "is " + graph::describe(value.dtype, value.sizes) +
                       (value.requires_grad ? "" : ", without a gradient") + accepted);
    return v;
  }

  bool is_live(graph::ValueId v) const { return v == loss_ || gradients_.contains(v); }

  void add_stage_backward(int stage) {
    const graph::Graph& graph = pipe_.stages[stage].graph;
    const std::vector<graph::ValueId> made = root_.nodes[stage].results[0].values;
    std::vector<graph::ValueId> outputs, output_grads, local_outputs;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i] == graph::kNoValue || !is_live(made[i])) continue;
      outputs.push_back(made[i]);
      output_grads.push_back(made[i] == loss_ ? graph::kNoValue : gradients_.at(made[i]));
      local_outputs.push_back(graph.outputs[i]);
    }
    if (outputs.empty()) return;
    const std::vector<char> reached = graph::gradient_reach(graph, local_outputs);
    const std::vector<graph::ValueId> inputs = root_.nodes[stage].arguments[1].values;
    graph::Result result{true, {}};
    for (const graph::GraphInput& input : graph.inputs)
      result.values.push_back(reached[input.value] ? add_gradient_of(graph.values[input.value]) : graph::kNoValue);
    const std::vector<graph::ValueId> grads = result.values;
    root_.nodes.push_back(
        {stage_backward_,
         {list(std::move(outputs)), list(output_grads, graph::Argument::Kind::OptionalTensorList), list(inputs)},
         {std::move(result)}});
    for (size_t i = 0; i < inputs.size(); ++i)
      if (grads[i] != graph::kNoValue) assign_or_accumulate(inputs[i], grads[i]);
  }

  void assign_or_accumulate(graph::ValueId v, graph::ValueId grad) {
    const auto [it, first] = gradients_.emplace(v, grad);
    if (first) return;
    if (std::ranges::find(root_.inputs, v, &graph::GraphInput::value) == root_.inputs.end()) {
      const graph::ValueId sum = add_gradient_of(root_.values[v]);
      const auto one = [](graph::ValueId x) { return graph::Argument{graph::Argument::Kind::Value, {}, {x}}; };
      root_.nodes.push_back({accumulate_, {one(it->second), one(grad)}, {graph::Result{false, {sum}}}});
      grad = sum;
    }
    it->second = grad;
  }

  graph::ValueId add_gradient_of(const graph::Value& value) {
    return root_.add_value({.dtype = value.dtype, .sizes = value.sizes});
  }

  const c10::OperatorHandle call_stage_ = root_operator("plumbline::call_stage"),
                            stage_backward_ = root_operator("plumbline::stage_backward"),
                            accumulate_ = root_operator("plumbline::null_coalesce_accumulate");
  const split::Pipe& pipe_;
  graph::Graph root_;
  std::vector<graph::ValueId> boundary_values_;  // by boundary
  std::vector<std::unordered_map<graph::ValueId, graph::ValueId>>
      of_local_;  // by stage: its inputs and outputs in the root
  graph::ValueId loss_ = graph::kNoValue;
  std::unordered_map<graph::ValueId, graph::ValueId> gradients_;  // of values that reach the loss, summed so far
};

}  // namespace

graph::Graph root_graph(const split::Pipe& pipe, std::optional<int> loss_output) {
  Builder builder(pipe);
  builder.add_forward();
  if (loss_output) builder.add_backward(*loss_output);
  return builder.finish();
}

PipeInfo info(const split::Pipe& pipe, std::optional<int> loss_output) {
  return {root_graph(pipe, loss_output), pipe.num_stages(), loss_output.has_value()};
}

}  // namespace plumbline::reference

#include "runtime/split/stage_module.h"

#include "runtime/error.h"
#include "runtime/split/device.h"

namespace plumbline::split {
namespace {

void check_stage(const Pipe& pipe, int stage) {
  if (stage < 0 || stage >= pipe.num_stages())
    throw InputError(
        "pipe: there is no stage " + std::to_string(stage) + "; it has " +
        (pipe.num_stages() == 1 ? "stage 0 only" : "stages 0 to " + std::to_string(pipe.num_stages() - 1)));
}

/// The tensors that a bound graph owns.
StageState state_of(const graph::Graph& graph) {
  StageState state;
  for (const graph::Attribute& attribute : graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Constant) continue;
    auto& tensors = attribute.kind == graph::AttributeKind::Parameter ? state.parameters : state.buffers;
    tensors.emplace(attribute.name, attribute.tensor);
  }
  return state;
}

graph::Graph bound_graph(const Pipe& pipe, int stage) {
  check_stage(pipe, stage);
  graph::Graph graph = pipe.stages[stage].graph;
  const StageState state = make_stage_state(pipe, stage);
  for (graph::Attribute& attribute : graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Parameter) attribute.tensor = state.parameters.at(attribute.name);
    if (attribute.kind == graph::AttributeKind::Buffer) attribute.tensor = state.buffers.at(attribute.name);
  }
  return graph;
}

StageModule module_of(graph::Graph graph) {
  StageState state = state_of(graph);
  return {std::move(graph), std::move(state)};
}

}  // namespace

StageModule::StageModule(graph::Graph graph, StageState state)
    : graph_(std::make_unique<const graph::Graph>(std::move(graph))), state_(std::move(state)), interpreter_(*graph_) {}

std::vector<at::Tensor> StageModule::forward(const std::vector<at::Tensor>& inputs) {
  if (inputs.size() != graph_->inputs.size()) {
    std::string names;
    for (const graph::GraphInput& input : graph_->inputs) names += (names.empty() ? "" : ", ") + input.name;
    throw InputError("stage: " + std::to_string(inputs.size()) + " inputs given, it takes " +
                     std::to_string(graph_->inputs.size()) + " (" + names + ")");
  }
  std::vector<at::Tensor> outputs;
  interpreter_.run(inputs, outputs);
  return outputs;
}

std::map<std::string, at::Tensor> StageModule::state_dict() const {
  return plumbline::split::state_dict(*graph_, state_);
}

StageModule get_stage_module(const Pipe& pipe, int stage) { return module_of(bound_graph(pipe, stage)); }

StageModule build_stage(const Pipe& pipe, int stage, c10::Device device) {
  graph::Graph graph = bound_graph(pipe, stage);
  move_to_device(graph, device);
  return module_of(std::move(graph));
}

}  // namespace plumbline::split

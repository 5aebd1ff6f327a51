#include "runtime/split/pipe.h"

#include <ATen/core/grad_mode.h>

#include <unordered_set>

#include "runtime/error.h"

namespace plumbline::split {
namespace {

/// The names of the tensors that earlier stages own.
std::unordered_set<std::string> owned_before(const Pipe& pipe, int stage) {
  std::unordered_set<std::string> names;
  for (int s = 0; s < stage; ++s)
    for (const graph::Attribute& attribute : pipe.stages[s].graph.attributes)
      if (attribute.kind != graph::AttributeKind::Constant) names.insert(attribute.name);
  return names;
}

}  // namespace

StageState make_stage_state(const Pipe& pipe, int stage) {
  StageState state;
  const std::unordered_set<std::string> earlier = owned_before(pipe, stage);
  for (const graph::Attribute& attribute : pipe.stages.at(stage).graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Constant) continue;
    at::Tensor tensor = attribute.tensor;
    if (earlier.contains(attribute.name)) {
      const c10::NoGradGuard no_grad;
      tensor = tensor.clone().requires_grad_(tensor.requires_grad());
    }
    auto& tensors = attribute.kind == graph::AttributeKind::Parameter ? state.parameters : state.buffers;
    tensors.emplace(attribute.name, tensor);
  }
  return state;
}

std::map<std::string, at::Tensor> state_dict(const graph::Graph& graph, const StageState& state) {
  std::map<std::string, at::Tensor> tensors;
  for (const graph::Attribute& attribute : graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Constant || !attribute.persistent) continue;
    const auto& owned = attribute.kind == graph::AttributeKind::Parameter ? state.parameters : state.buffers;
    const at::Tensor& tensor = owned.at(attribute.name);
    tensors.emplace(attribute.name, tensor);
    for (const std::string& alias : attribute.aliases) tensors.emplace(alias, tensor);
  }
  return tensors;
}

void bind(graph::Graph& graph, const StageState& state) {
  for (graph::Attribute& attribute : graph.attributes) {
    // A tensor that the graph does not use may belong to another stage: training and evaluation can use different ones.
    if (attribute.kind == graph::AttributeKind::Constant || attribute.value == graph::kNoValue) continue;
    const auto& tensors = attribute.kind == graph::AttributeKind::Parameter ? state.parameters : state.buffers;
    const auto it = tensors.find(attribute.name);
    if (it == tensors.end())
      throw InputError("split: a stage uses '" + attribute.name +
                       "', which it did not when the first step gave each stage its parameters and buffers; let the "
                       "first step be one in which the model uses all of them (a training step, say)");
    attribute.tensor = it->second;
  }
}

}  // namespace plumbline::split

#include "runtime/graph/as_captured.h"

namespace plumbline::graph {

std::string why_not_runnable(const Graph& graph, const std::vector<at::Tensor>& inputs) {
  if (inputs.size() != graph.inputs.size())
    return "the graph takes " + std::to_string(graph.inputs.size()) + " inputs, got " + std::to_string(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& captured = graph.values[graph.inputs[i].value];
    if (!is_as_captured(inputs[i], captured))
      return "input \"" + graph.inputs[i].name + "\" is to be as captured, " +
             describe(captured.dtype, captured.sizes) + ", got " + describe(inputs[i]);
  }
  for (const Attribute& attribute : graph.attributes)
    if (attribute.value != kNoValue && !attribute.tensor.defined())
      return "\"" + attribute.name + "\" is bound to no tensor";
  return {};
}

}  // namespace plumbline::graph

#include "runtime/split/cut/boundary_names.h"

#include <unordered_map>

namespace plumbline::split {
namespace {

std::string short_name(const graph::Node& node) {
  const std::string& name = node.op->operator_name().name;
  return name.substr(name.rfind(':') + 1);
}

/// By value: one past the last node that reads it; past all nodes for the graph's outputs.
std::vector<int32_t> read_until(const graph::Graph& graph) {
  std::vector<int32_t> until(graph.values.size(), 0);
  const auto count = static_cast<int32_t>(graph.nodes.size());
  for (int32_t i = 0; i < count; ++i) graph::for_each_use(graph.nodes[i], [&](graph::ValueId v) { until[v] = i + 1; });
  for (graph::ValueId v : graph.outputs)
    if (v != graph::kNoValue) until[v] = count + 1;
  return until;
}

/// Whether a node after the module, or the graph's output, reads the node's results.
bool leaves(const graph::ModuleCall& module, const graph::Node& node, const std::vector<int32_t>& until) {
  bool found = false;
  graph::for_each_definition(node, [&](graph::ValueId v) { found = found || until[v] > module.end; });
  return found;
}

}  // namespace

std::vector<std::string> boundary_names(const graph::Graph& graph) {
  const size_t count = graph.nodes.size();
  const std::vector<int32_t> until = read_until(graph);
  // Calls are in the order of entry: of two around a node the later is the inner one.
  std::vector<const graph::ModuleCall*> innermost(count, nullptr), returned_by(count, nullptr);
  for (const graph::ModuleCall& module : graph.module_calls) {
    if (module.name.empty() || module.begin == module.end) continue;
    for (int32_t i = module.begin; i < module.end; ++i) innermost[i] = &module;
    // The nodes that change its buffers may follow the node that makes its result.
    int32_t last = module.end - 1;
    while (last >= module.begin && !leaves(module, graph.nodes[last], until)) --last;
    if (last >= module.begin && !returned_by[last]) returned_by[last] = &module;
  }
  std::vector<std::string> names(graph.values.size());
  std::unordered_map<std::string, int> taken;
  const auto give = [&](graph::ValueId v, std::string name) {
    for (int times = ++taken[name]; times > 1; times = ++taken[name]) name += "#" + std::to_string(times);
    names[v] = std::move(name);
  };
  for (const graph::GraphInput& input : graph.inputs) give(input.value, input.name);
  for (size_t i = 0; i < count; ++i) {
    const graph::Node& node = graph.nodes[i];
    if (node.is_split()) continue;
    bool first = true;
    graph::for_each_definition(node, [&](graph::ValueId v) {
      if (first && returned_by[i])
        give(v, returned_by[i]->name);
      else
        give(v, (innermost[i] ? innermost[i]->name + ":" : "") + short_name(node));
      first = false;
    });
  }
  return names;
}

}  // namespace plumbline::split

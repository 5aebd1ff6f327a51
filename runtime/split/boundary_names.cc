#include "runtime/split/boundary_names.h"

#include <unordered_map>

namespace plumbline {
namespace {

std::string short_name(const Node& node) {
  const std::string& name = node.op->operator_name().name;
  return name.substr(name.rfind(':') + 1);
}

}  // namespace

std::vector<std::string> boundary_names(const Graph& graph) {
  const size_t count = graph.nodes.size();
  // Calls are in the order of entry: of two around a node the later is the inner one.
  std::vector<const ModuleCall*> innermost(count, nullptr), ends_with(count, nullptr);
  for (const ModuleCall& module : graph.module_calls) {
    if (module.name.empty() || module.begin == module.end) continue;
    for (int32_t i = module.begin; i < module.end; ++i) innermost[i] = &module;
    if (!ends_with[module.end - 1]) ends_with[module.end - 1] = &module;
  }
  std::vector<std::string> names(graph.values.size());
  std::unordered_map<std::string, int> taken;
  const auto give = [&](ValueId v, std::string name) {
    for (int times = ++taken[name]; times > 1; times = ++taken[name]) name += "#" + std::to_string(times);
    names[v] = std::move(name);
  };
  for (const GraphInput& input : graph.inputs) give(input.value, input.name);
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes[i];
    if (node.is_split()) continue;
    bool first = true;
    for_each_definition(node, [&](ValueId v) {
      if (first && ends_with[i])
        give(v, ends_with[i]->name);
      else
        give(v, (innermost[i] ? innermost[i]->name + ":" : "") + short_name(node));
      first = false;
    });
  }
  return names;
}

}  // namespace plumbline

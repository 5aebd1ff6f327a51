#include "runtime/graph/gradient_reach.h"

#include <unordered_set>

namespace plumbline::graph {

std::vector<char> gradient_reach(const Graph& graph, const std::vector<ValueId>& roots) {
  std::vector<char> reached(graph.values.size(), 0);
  std::unordered_set<int32_t> reached_memory;
  // Values in the same memory have the same key; a value of unknown memory has one to itself.
  const auto memory = [&](ValueId v) { return graph.values[v].storage >= 0 ? graph.values[v].storage : -2 - v; };
  const auto mark = [&](ValueId v) {
    if (v == kNoValue || !graph.values[v].requires_grad) return;
    reached[v] = 1;
    reached_memory.insert(memory(v));
  };
  for (ValueId v : roots) mark(v);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (!node.grad_enabled) continue;
    bool reaches_root = false;
    for_each_definition(node, [&](ValueId v) { reaches_root = reaches_root || reached[v]; });
    for_each_mutation(node, [&](ValueId v) { reaches_root = reaches_root || reached_memory.contains(memory(v)); });
    if (reaches_root) for_each_use(node, mark);
  }
  return reached;
}

}  // namespace plumbline::graph

#include "runtime/split/policy/legal_cuts.h"

#include <algorithm>
#include <unordered_map>

namespace plumbline::split {
namespace {

/// The range of nodes that no position may divide: a position in (first, last] would.
struct Span {
  int32_t first, last;
};

struct Memory {
  /// No node makes it: a parameter, a buffer, a constant or an input.
  bool given = false;
  /// The nodes that make or use a value in it; an input comes with node 0.
  Span used = {-1, -1};
  int32_t last_write = -1;

  void add_use(int32_t node) {
    if (used.first < 0) used.first = node;
    used.last = std::max(used.last, node);
  }
};

class Memories {
 public:
  explicit Memories(const graph::Graph& graph) : graph_(graph) {
    for (const graph::Attribute& attribute : graph.attributes)
      if (attribute.value != graph::kNoValue) of(attribute.value).given = true;
    for (const graph::GraphInput& input : graph.inputs) {
      of(input.value).given = true;
      of(input.value).add_use(0);
    }
    const auto nodes = static_cast<int32_t>(graph.nodes.size());
    for (int32_t i = 0; i < nodes; ++i) {
      const graph::Node& node = graph.nodes[i];
      graph::for_each_use(node, [&](graph::ValueId v) { of(v).add_use(i); });
      graph::for_each_definition(node, [&](graph::ValueId v) { of(v).add_use(i); });
      graph::for_each_mutation(node, [&](graph::ValueId v) { of(v).last_write = i; });
    }
    // The last stage returns the outputs.
    for (graph::ValueId v : graph.outputs)
      if (v != graph::kNoValue) of(v).add_use(nodes - 1);
  }

  /// Visits the memory that is written.
  template <class Visit>
  void for_each_bound_span(Visit&& visit) const {
    for (const auto& [key, memory] : memories_)
      if (memory.last_write >= 0) visit(Span{memory.used.first, memory.given ? memory.used.last : memory.last_write});
  }

 private:
  Memory& of(graph::ValueId v) {
    const int32_t storage = graph_.values[v].storage;
    return memories_[storage >= 0 ? storage : -2 - v];
  }

  const graph::Graph& graph_;
  std::unordered_map<int32_t, Memory> memories_;
};

}  // namespace

std::vector<char> legal_cuts(const graph::Graph& graph) {
  const size_t nodes = graph.nodes.size();
  std::vector<int32_t> begins(nodes + 1, 0), ends(nodes + 1, 0);  // of stretches of illegal positions
  Memories(graph).for_each_bound_span([&](const Span& span) {
    ++begins[span.first];
    ++ends[span.last];
  });
  std::vector<char> legal(nodes + 1, 0);
  bool any_call = false;
  int32_t open = 0;  // spans that hold both the node before this position and the one after it
  for (size_t p = 0; p < nodes; ++p) {
    const bool is_call = !graph.nodes[p].is_split();
    legal[p] = is_call && any_call && open == 0;
    any_call = any_call || is_call;
    open += begins[p] - ends[p];
  }
  return legal;
}

}  // namespace plumbline::split

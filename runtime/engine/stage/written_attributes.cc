#include "runtime/engine/stage/written_attributes.h"

namespace plumbline::engine {

std::set<graph::ValueId> written_attributes(const graph::Graph& graph) {
  std::set<graph::ValueId> written;
  for (const graph::Node& node : graph.nodes)
    graph::for_each_mutation(node, [&](graph::ValueId changed) {
      const int32_t memory = graph.values[changed].storage;
      for (const graph::Attribute& attribute : graph.attributes)
        if (attribute.value == changed ||
            (attribute.value != graph::kNoValue && memory >= 0 && graph.values[attribute.value].storage == memory))
          written.insert(attribute.value);
    });
  return written;
}

}  // namespace plumbline::engine

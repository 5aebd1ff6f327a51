#include "runtime/engine/written_attributes.h"

namespace plumbline {

std::set<ValueId> written_attributes(const Graph& graph) {
  std::set<ValueId> written;
  for (const Node& node : graph.nodes)
    for_each_mutation(node, [&](ValueId changed) {
      const int32_t memory = graph.values[changed].storage;
      for (const Attribute& attribute : graph.attributes)
        if (attribute.value == changed ||
            (attribute.value != kNoValue && memory >= 0 && graph.values[attribute.value].storage == memory))
          written.insert(attribute.value);
    });
  return written;
}

}  // namespace plumbline

// The attributes of a graph: what they are called in its forms, and all of them together with those of its branches.
#pragma once

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// "parameter", "buffer", "constant".
inline const char* kind_word(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::Parameter:
      return "parameter";
    case AttributeKind::Buffer:
      return "buffer";
    case AttributeKind::Constant:
      return "constant";
  }
  return "";
}

/// Calls `visit(const Attribute&, depth)`, depth 0 for the graph's own, in a fixed order.
template <class Visit>
void for_each_attribute(const Graph& graph, Visit&& visit, int depth = 0) {
  for (const Attribute& attribute : graph.attributes) visit(attribute, depth);
  for (const Node& node : graph.nodes)
    for (const auto& branch : node.branches) for_each_attribute(*branch, visit, depth + 1);
}

/// The same, for changes: branches may be shared with other graphs and are copied.
template <class Visit>
void for_each_attribute(Graph& graph, Visit&& visit, int depth = 0) {
  for (Attribute& attribute : graph.attributes) visit(attribute, depth);
  for (Node& node : graph.nodes)
    for (auto& branch : node.branches) {
      auto copy = std::make_shared<Graph>(*branch);
      for_each_attribute(*copy, visit, depth + 1);
      branch = std::move(copy);
    }
}

}  // namespace plumbline::graph

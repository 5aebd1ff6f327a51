// The attributes of a graph: the word for each kind in the text and JSON forms, and visits of all attributes, including
// the attributes of the graphs in branches.
#pragma once

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// "parameter", "buffer" or "constant".
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

/// Calls `visit(const Attribute&, depth)` for the graph's own attributes (depth 0), then for the branches of each node
/// in order (depth + 1).
template <class Visit>
void for_each_attribute(const Graph& graph, Visit&& visit, int depth = 0) {
  for (const Attribute& attribute : graph.attributes) visit(attribute, depth);
  for (const Node& node : graph.nodes)
    for (const auto& branch : node.branches) for_each_attribute(*branch, visit, depth + 1);
}

/// The same with `visit(Attribute&, depth)`, which may change the attribute. Every branch is replaced by a copy first,
/// since other graphs may share the branch.
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

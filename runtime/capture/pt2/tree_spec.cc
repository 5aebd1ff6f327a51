#include "runtime/capture/pt2/tree_spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/io/json_place.h"

namespace plumbline::capture::pt2 {
namespace {

using nlohmann::json;

TreeSpec from_json(const json& node) {
  TreeSpec spec;
  if (node.at("type").is_null()) return spec;
  spec.type = node.at("type").get<std::string>();
  for (const json& child : node.at("children_spec")) spec.children.push_back(from_json(child));
  // The context is JSON within a string; for unknown classes it may be anything.
  const json& context = node.at("context");
  const json inner = context.is_string() ? json::parse(context.get<std::string>(), nullptr, false) : context;
  if (inner.is_array() && inner.size() == spec.children.size() &&
      std::all_of(inner.begin(), inner.end(), [](const json& key) { return key.is_string(); }))
    spec.keys = inner.get<std::vector<std::string>>();
  return spec;
}

graph::OutputTree nest(const TreeSpec& spec, const std::vector<graph::OutputTree>& leaves, size_t& next) {
  if (spec.is_leaf()) return leaves[next++];
  graph::OutputTree tree;
  tree.kind = graph::OutputTree::Kind::Tuple;
  if (spec.type == "builtins.list") tree.kind = graph::OutputTree::Kind::List;
  if (spec.type == "builtins.dict" ? spec.keys.size() == spec.children.size() : !spec.keys.empty()) {
    tree.kind = graph::OutputTree::Kind::Dict;
    tree.keys = spec.keys;
  }
  for (const TreeSpec& child : spec.children) tree.items.push_back(nest(child, leaves, next));
  return tree;
}

}  // namespace

size_t TreeSpec::leaves() const {
  if (is_leaf()) return 1;
  size_t count = 0;
  for (const TreeSpec& child : children) count += child.leaves();
  return count;
}

TreeSpec parse_tree_spec(const std::string& text) {
  try {
    const json spec = parse_json(text, "the tree spec");
    if (!spec.is_array() || spec.size() != 2 || spec[0] != 1)
      throw InputError("a tree spec must be a pair of the protocol version 1 and an object");
    return from_json(spec[1]);
  } catch (const json::exception& error) {
    throw InputError("not a tree spec: " + json_reason(error));
  }
}

graph::OutputTree output_tree(const TreeSpec& spec, const std::vector<graph::OutputTree>& leaves) {
  if (spec.leaves() != leaves.size()) return {graph::OutputTree::Kind::Tuple, -1, "", leaves, {}};
  size_t next = 0;
  return nest(spec, leaves, next);
}

}  // namespace plumbline::capture::pt2

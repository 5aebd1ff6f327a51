// TreeSpec: how Python nested the inputs or outputs of an exported program (torch.utils._pytree, treespec protocol 1),
// without the Python classes: only tuple, list and dict are known by name; for others only the visible structure is
// used.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/output_tree.h"

namespace plumbline::capture::pt2 {

struct TreeSpec {
  std::string type;               ///< "builtins.dict" and the like; empty for a leaf
  std::vector<std::string> keys;  ///< one for each child, if the context is a list of as many strings
  std::vector<TreeSpec> children;

  bool is_leaf() const { return type.empty(); }
  size_t leaves() const;
};

/// Parses the text of in_spec or out_spec. Throws InputError when it is not such a text.
TreeSpec parse_tree_spec(const std::string& text);

/// The tree of the outputs, given the subtrees at its leaves, in order. A list becomes a List, a container with string
/// keys (dict, the output classes of model libraries) a Dict, everything else a Tuple. If the spec has another number
/// of leaves, the result is one Tuple of all of them.
graph::OutputTree output_tree(const TreeSpec& spec, const std::vector<graph::OutputTree>& leaves);

}  // namespace plumbline::capture::pt2

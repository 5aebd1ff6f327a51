// TreeSpec: the nesting in Python of an exported program's inputs or outputs (torch.utils._pytree, treespec protocol
// 1). Python classes are not available here: tuple, list and dict are known by name; of other containers only the
// recorded structure is used.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/output_tree.h"

namespace plumbline::capture::pt2 {

struct TreeSpec {
  std::string type;  ///< "builtins.dict" and the like; empty for a leaf
  /// One for each child if the spec's context is a list of as many strings; otherwise empty.
  std::vector<std::string> keys;
  std::vector<TreeSpec> children;

  bool is_leaf() const { return type.empty(); }
  size_t leaves() const;
};

/// Parses the text of in_spec or out_spec. Throws InputError if `text` is malformed or has another protocol version.
TreeSpec parse_tree_spec(const std::string& text);

/// Returns the tree of `spec` with `leaves` in place of its leaves, in order. A list becomes a List, a container with
/// string keys (dict, the output classes of model libraries) a Dict, any other container a Tuple. If `spec` has another
/// number of leaves, returns one Tuple of all of `leaves`.
graph::OutputTree output_tree(const TreeSpec& spec, const std::vector<graph::OutputTree>& leaves);

}  // namespace plumbline::capture::pt2

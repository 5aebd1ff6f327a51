// Which values a default partition saves: the rules that all PyTorch versions share.
#pragma once

#include <utility>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// By node: whether the forward's outputs need it, or it is an input of the forward.
std::vector<char> forward_by_data_flow(const JointGraph& graph, const JointEdges& edges, const Policy& policy);

/// Collects the forward values to save; each once, in the order in which they are found.
class DefaultSaver {
 public:
  DefaultSaver(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& forward)
      : graph_(graph), edges_(edges), forward_(forward), listed_(graph.nodes.size(), 0) {}

  void save(NodeIndex node) { list(node, saved.tensors); }

  /// Saves the items that getitems take from a tuple, nested tuples included.
  void save_parts(NodeIndex tuple);

  void save_symbol(NodeIndex node);

  /// If the backward reads only sizes and strides of `node`, saves these in its place. Returns false if the backward
  /// needs the value itself.
  bool save_its_sizes_alone(NodeIndex node);

  /// Whether `node` has users, all of them getitems.
  bool is_taken_apart(NodeIndex node) const;

  SavedValues saved;

 private:
  void list(NodeIndex node, std::vector<NodeIndex>& where) {
    if (!std::exchange(listed_[node], 1)) where.push_back(node);
  }

  const JointGraph& graph_;
  const JointEdges& edges_;
  const std::vector<char>& forward_;
  std::vector<char> listed_;
};

/// Throws InputError: the result of `node` is needed but cannot be saved.
[[noreturn]] void refuse_result(const JointNode& node);

}  // namespace plumbline::partition

// Selects the values that a default partition saves: the rules that all PyTorch versions share.
#pragma once

#include <utility>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// Returns, indexed by NodeIndex, whether the node is an input of the forward, or the forward's outputs or a call that
/// must run in the forward need it.
std::vector<char> forward_by_data_flow(const JointGraph& graph, const JointEdges& edges, const Policy& policy);

/// Collects the forward values to save in `saved`: each once, in the order in which the functions below save them.
class DefaultSaver {
 public:
  /// `forward`, indexed by NodeIndex: whether the forward runs the node. The arguments must outlive the saver.
  DefaultSaver(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& forward)
      : graph_(graph), edges_(edges), forward_(forward), listed_(graph.nodes.size(), 0) {}

  void save(NodeIndex node) { list(node, saved.tensors); }

  /// Saves the items that getitems take from a tuple, nested tuples included.
  void save_parts(NodeIndex tuple);

  /// Saves a symbolic scalar, unless it is a bool used only by assertions.
  void save_symbol(NodeIndex node);

  /// Returns false, and saves nothing, if `node` is an output or if a user outside the forward is not a symbolic scalar
  /// (a size or stride of `node`). Otherwise saves those scalars instead of `node`, and returns true.
  bool save_its_sizes_alone(NodeIndex node);

  /// Whether `node` has users, is no output, and all its users are getitems.
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

/// Throws InputError naming `node`: its result is needed, but is neither a tensor nor a tuple used only by getitems.
[[noreturn]] void refuse_result(const JointNode& node);

}  // namespace plumbline::partition

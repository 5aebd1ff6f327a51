// What a default partition saves: the parts that the rules of all versions share.
#pragma once

#include <utility>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// By node: the forward's outputs need it, or it is an input of the forward.
std::vector<char> forward_by_data_flow(const JointGraph& graph, const JointEdges& edges, const Policy& policy);

/// What to save of a forward; each once, in the order in which it is met.
class DefaultSaver {
 public:
  DefaultSaver(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& forward)
      : graph_(graph), edges_(edges), forward_(forward), listed_(graph.nodes.size(), 0) {}

  void save(NodeIndex node) { list(node, saved.tensors); }

  /// What getitems take out of a tuple, also out of tuples within.
  void save_parts(NodeIndex tuple);

  void save_symbol(NodeIndex node);

  /// A value of which the backward only asks for sizes and strides is not saved, those are.
  /// False: the value itself is needed.
  bool save_its_sizes_alone(NodeIndex node);

  /// Somebody uses it, and all who do are getitems.
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

/// Throws InputError: the result of `node` is needed and cannot be saved.
[[noreturn]] void refuse_result(const JointNode& node);

}  // namespace plumbline::partition

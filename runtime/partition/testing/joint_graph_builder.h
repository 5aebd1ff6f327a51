// For tests and benchmarks: hand-written joint graphs, one line per node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::testing {

/// Builds a JointGraph node by node; inputs first. Tensors are one-dimensional: float32 if their bytes are a multiple
/// of 4, otherwise uint8. Names are those of torch.fx: primals_1, tangents_1, mm, mm_1; getitems follow their call.
/// Tags (pointwise, view, seeded) are set for the operators that tests use.
class JointGraphBuilder {
 public:
  partition::NodeIndex primal(int64_t bytes);
  partition::NodeIndex tangent(int64_t bytes);
  /// A constant tensor.
  partition::NodeIndex constant(int64_t bytes);

  /// A call whose result has its own storage. An `op` without namespace is in aten.
  partition::NodeIndex call(const std::string& op, const std::vector<partition::NodeIndex>& inputs, int64_t bytes,
                            double flops = 1);
  /// A call whose result shares the storage of `of`; bytes -1: as many as `of`.
  partition::NodeIndex view(const std::string& op, partition::NodeIndex of, int64_t bytes = -1);
  /// A call with several results; returns their getitems. The call is the node before the first of them.
  std::vector<partition::NodeIndex> multi(const std::string& op, const std::vector<partition::NodeIndex>& inputs,
                                          const std::vector<int64_t>& bytes, double flops = 1);
  /// aten::split: like multi(), with results that are views of `of`.
  std::vector<partition::NodeIndex> split(partition::NodeIndex of, int parts);
  /// A call that returns an integer (aten::sym_size, operator::mul, ...).
  partition::NodeIndex integer(const std::string& op, const std::vector<partition::NodeIndex>& inputs, int64_t hint);

  /// Marks later nodes as the backward's, as tracing does.
  void begin_backward() { in_backward_ = true; }

  partition::JointNode& at(partition::NodeIndex node) { return graph_.nodes[node]; }
  int size() const { return static_cast<int>(graph_.nodes.size()); }

  /// The graph so far. `gradients`: one for each primal, padded with kNoNode.
  partition::JointGraph graph(std::vector<partition::NodeIndex> forward_outputs,
                              std::vector<partition::NodeIndex> gradients) const;

 private:
  partition::NodeIndex add(partition::JointNode node);
  partition::JointNode call_node(const std::string& op, const std::vector<partition::NodeIndex>& inputs, double flops);
  partition::JointResult tensor(int64_t bytes, int32_t storage) const;
  int32_t new_storage(int64_t bytes);
  std::vector<partition::NodeIndex> getitems(partition::NodeIndex call);

  partition::JointGraph graph_;
  int primals_ = 0, tangents_ = 0, constants_ = 0;
  bool in_backward_ = false;
  std::map<std::string, int> named_;  ///< how often a name was used
};

/// For test messages, one line per node: name, inputs, bytes and storage, tag.
std::string to_text(const partition::JointGraph& graph);

}  // namespace plumbline::testing

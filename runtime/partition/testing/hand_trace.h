// For tests: a hand-written trace, call by call, in the form of trace_joint()'s result, and a partition of it for
// chosen saved values.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/run/run.h"
#include "runtime/partition/testing/arguments.h"

namespace plumbline::testing {

class HandTrace {
 public:
  using Arguments = std::vector<partition::JointArgument>;
  using Keywords = std::vector<std::pair<std::string, partition::JointArgument>>;

  /// Inputs come first: attributes, then inputs, then tangents. A node's result is described by the given tensor.
  partition::NodeIndex attribute(graph::AttributeKind kind, const std::string& name, const at::Tensor& tensor);
  partition::NodeIndex input(const at::Tensor& tensor);
  /// The gradient of output number `output`.
  partition::NodeIndex tangent(int output, const at::Tensor& like);

  /// Executes the call to determine its results.
  partition::NodeIndex call(const std::string& op, Arguments arguments, Keywords keywords = {}) {
    return call(op, "default", std::move(arguments), std::move(keywords));
  }
  partition::NodeIndex call(const std::string& op, const std::string& overload, Arguments arguments,
                            Keywords keywords = {});
  partition::NodeIndex item(partition::NodeIndex call, int index);

  /// `gradients`: one for each primal; `written`: primals and their new values.
  void finish(std::vector<partition::NodeIndex> outputs, std::vector<partition::NodeIndex> gradients,
              const std::vector<std::pair<partition::NodeIndex, partition::NodeIndex>>& written = {});

  const graph::Graph& graph() const { return graph_; }
  const partition::JointTrace& trace() const { return trace_; }

  /// The backward computes everything it needs from `saved` and the primals.
  partition::Partition partition(std::vector<partition::NodeIndex> saved) const;

  partition::PartitionedGraph partitioned(std::vector<partition::NodeIndex> saved) const {
    return partition::PartitionedGraph(graph_, trace_, partition(std::move(saved)));
  }

 private:
  partition::NodeIndex add(partition::JointNode node, std::vector<at::Tensor> values);
  partition::JointResult result_of(const at::Tensor& tensor);
  partition::NodeIndex primal(const at::Tensor& tensor, partition::PrimalSource source);
  std::vector<partition::NodeIndex> needed(const std::vector<partition::NodeIndex>& outputs,
                                           const std::vector<partition::NodeIndex>& given) const;

  graph::Graph graph_;
  partition::JointTrace trace_;
  std::vector<std::vector<at::Tensor>> values_;  // by node
  std::map<const void*, int32_t> storages_;
};

}  // namespace plumbline::testing

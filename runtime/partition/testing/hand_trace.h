// For tests: a traced graph written down call by call, as trace_joint() would make it, and a partition of it for chosen
// saved values.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/run/run.h"

namespace plumbline::testing {

class HandTrace {
 public:
  using Arguments = std::vector<JointArgument>;
  using Keywords = std::vector<std::pair<std::string, JointArgument>>;

  /// Inputs first: attributes, then inputs, then tangents. What a node gives is known from the tensor.
  NodeIndex attribute(AttributeKind kind, const std::string& name, const at::Tensor& tensor);
  NodeIndex input(const at::Tensor& tensor);
  /// The gradient of output number `output`.
  NodeIndex tangent(int output, const at::Tensor& like);

  /// Carries the call out, so that its results are known as well.
  NodeIndex call(const std::string& op, Arguments arguments, Keywords keywords = {}) {
    return call(op, "default", std::move(arguments), std::move(keywords));
  }
  NodeIndex call(const std::string& op, const std::string& overload, Arguments arguments, Keywords keywords = {});
  NodeIndex item(NodeIndex call, int index);

  /// `gradients`: one for each primal; `written`: primals and what they are afterwards.
  void finish(std::vector<NodeIndex> outputs, std::vector<NodeIndex> gradients,
              const std::vector<std::pair<NodeIndex, NodeIndex>>& written = {});

  const Graph& graph() const { return graph_; }
  const JointTrace& trace() const { return trace_; }

  /// The backward computes from `saved`, and from primals, whatever it needs.
  Partition partition(std::vector<NodeIndex> saved) const;

  PartitionedGraph partitioned(std::vector<NodeIndex> saved) const {
    return PartitionedGraph(graph_, trace_, partition(std::move(saved)));
  }

 private:
  NodeIndex add(JointNode node, std::vector<at::Tensor> values);
  JointResult result_of(const at::Tensor& tensor);
  NodeIndex primal(const at::Tensor& tensor, PrimalSource source);
  std::vector<NodeIndex> needed(const std::vector<NodeIndex>& outputs, const std::vector<NodeIndex>& given) const;

  Graph graph_;
  JointTrace trace_;
  std::vector<std::vector<at::Tensor>> values_;  // by node
  std::map<const void*, int32_t> storages_;
};

inline JointArgument node(NodeIndex index) { return {.kind = JointArgument::Kind::Node, .node = index}; }
inline JointArgument none() { return {}; }
inline JointArgument number(int64_t value) { return {.kind = JointArgument::Kind::Integer, .integer = value}; }
inline JointArgument number(int value) { return number(int64_t{value}); }
inline JointArgument number(double value) { return {.kind = JointArgument::Kind::Float, .real = value}; }
inline JointArgument flag(bool value) { return {.kind = JointArgument::Kind::Bool, .integer = value}; }
inline JointArgument text(std::string value) { return {.kind = JointArgument::Kind::String, .text = std::move(value)}; }
inline JointArgument dtype(std::string value) { return {.kind = JointArgument::Kind::Dtype, .text = std::move(value)}; }
inline JointArgument list(std::vector<JointArgument> items) {
  return {.kind = JointArgument::Kind::List, .items = std::move(items)};
}

}  // namespace plumbline::testing

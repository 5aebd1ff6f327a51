// Joint graphs for tests, written by hand: nodes named as torch.fx names them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/partition/joint_graph.h"

namespace plumbline {

class JointGraphBuilder {
 public:
  using Shape = std::vector<int64_t>;

  NodeIndex primal(const Shape& shape = {10, 10}) { return input(JointKind::Primal, "primals_", shape); }
  NodeIndex tangent(const Shape& shape = {10, 10}) { return input(JointKind::Tangent, "tangents_", shape); }
  /// A number that binds the symbol `symbol`.
  NodeIndex symbolic_primal(const std::string& symbol, int64_t hint) {
    const NodeIndex node = input(JointKind::Primal, "primals_", {});
    make_scalar(node, symbol, hint);
    graph.nodes[node].binds = symbol;
    return node;
  }

  /// A call of `op` ("aten::mm") on tensors, its result a tensor of float32.
  NodeIndex call(const std::string& op, const std::vector<NodeIndex>& arguments, const Shape& shape = {10, 10}) {
    const NodeIndex node = add(op.substr(op.find("::") + 2), JointKind::Call);
    graph.nodes[node].op = op;
    graph.nodes[node].overload = "default";
    for (const NodeIndex argument : arguments) {
      JointArgument& written = graph.nodes[node].args.emplace_back();
      written.kind = JointArgument::Kind::Node;
      written.node = argument;
    }
    graph.nodes[node].out = tensor(shape);
    return node;
  }
  /// A call that gives a number of its tensor, say aten::sym_size.
  NodeIndex symbolic_call(const std::string& op, const std::vector<NodeIndex>& arguments, const std::string& expression,
                          int64_t hint) {
    const NodeIndex node = call(op, arguments, {});
    make_scalar(node, expression, hint);
    return node;
  }
  /// A call of several results; take them with getitem().
  NodeIndex tuple(const std::string& op, const std::vector<NodeIndex>& arguments, const std::vector<Shape>& shapes) {
    const NodeIndex node = call(op, arguments, {});
    JointResult out;
    out.kind = JointResult::Kind::Tuple;
    for (const Shape& shape : shapes) out.items.push_back(tensor(shape));
    graph.nodes[node].out = out;
    graph.nodes[node].multi_output = true;
    return node;
  }
  NodeIndex getitem(NodeIndex tuple, int64_t index) {
    const NodeIndex node = add("getitem", JointKind::GetItem);
    graph.nodes[node].op = "operator::getitem";
    graph.nodes[node].overload = "default";
    graph.nodes[node].args.resize(2);
    graph.nodes[node].args[0].kind = JointArgument::Kind::Node;
    graph.nodes[node].args[0].node = tuple;
    graph.nodes[node].args[1].kind = JointArgument::Kind::Integer;
    graph.nodes[node].args[1].integer = index;
    graph.nodes[node].out = graph.nodes[tuple].out.items.at(static_cast<size_t>(index));
    return node;
  }

  JointNode& operator[](NodeIndex node) { return graph.nodes[node]; }

  /// Everything up to the node `last` runs in the forward of whoever traced it, everything after it in the backward.
  void mark_forward_until(NodeIndex last) {
    for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i)
      if (graph.nodes[i].kind != JointKind::Tangent)
        graph.nodes[i].mark = i <= last ? JointMark::IsForward : JointMark::IsBackward;
  }

  JointGraph finish(const std::vector<NodeIndex>& forward_outputs, const std::vector<NodeIndex>& gradients) {
    graph.outputs = forward_outputs;
    graph.num_forward_outputs = static_cast<int>(forward_outputs.size());
    graph.outputs.insert(graph.outputs.end(), gradients.begin(), gradients.end());
    return graph;
  }

  JointGraph graph;

 private:
  NodeIndex add(const std::string& base, JointKind kind) {
    const int before = count_[base]++;
    graph.nodes.push_back({.name = before == 0 ? base : base + "_" + std::to_string(before), .kind = kind});
    return static_cast<NodeIndex>(graph.nodes.size()) - 1;
  }
  NodeIndex input(JointKind kind, const std::string& prefix, const Shape& shape) {
    const int number = ++count_[prefix];
    graph.nodes.push_back({.name = prefix + std::to_string(number), .kind = kind, .out = tensor(shape)});
    return static_cast<NodeIndex>(graph.nodes.size()) - 1;
  }
  void make_scalar(NodeIndex node, const std::string& expression, int64_t hint) {
    JointResult out;
    out.kind = JointResult::Kind::Scalar;
    out.dtype = "int";
    out.scalar = {hint, expression};
    graph.nodes[node].out = out;
    graph.nodes[node].free_symbols = {expression};
  }
  JointResult tensor(const Shape& shape) {
    JointResult out;
    out.kind = JointResult::Kind::Tensor;
    out.dtype = "float32";
    int64_t elements = 1;
    for (auto size = shape.rbegin(); size != shape.rend(); ++size) {
      out.shape.insert(out.shape.begin(), {*size, ""});
      out.strides.insert(out.strides.begin(), {elements, ""});
      elements *= *size;
    }
    out.bytes = 4 * elements;
    out.storage = static_cast<int32_t>(graph.storage_bytes.size());
    graph.storage_bytes.push_back(out.bytes);
    return out;
  }

  std::map<std::string, int> count_;
};

/// The names of `nodes`; "None" for kNoNode.
inline std::vector<std::string> names_of(const JointGraph& graph, const std::vector<NodeIndex>& nodes) {
  std::vector<std::string> names;
  for (const NodeIndex node : nodes) names.push_back(node == kNoNode ? "None" : graph.nodes[node].name);
  return names;
}

}  // namespace plumbline

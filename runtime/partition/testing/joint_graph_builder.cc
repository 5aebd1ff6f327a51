#include "runtime/partition/testing/joint_graph_builder.h"

#include <string_view>
#include <unordered_set>
#include <utility>

namespace plumbline::testing {
namespace {

bool is_pointwise(std::string_view op) {
  static const std::unordered_set<std::string_view> ops = {
      "aten::add",   "aten::sub",           "aten::mul",  "aten::div", "aten::cos",   "aten::sin",
      "aten::neg",   "aten::exp",           "aten::relu", "aten::pow", "aten::rsqrt", "aten::gelu",
      "aten::where", "aten::gelu_backward", "aten::gt",   "aten::erf", "aten::tanh",  "aten::tanh_backward"};
  return ops.contains(op);
}

bool is_seeded(std::string_view op) {
  static const std::unordered_set<std::string_view> ops = {"aten::native_dropout", "aten::rand_like",
                                                           "aten::bernoulli"};
  return ops.contains(op);
}

JointArgument of_node(NodeIndex node) { return {.kind = JointArgument::Kind::Node, .node = node}; }

}  // namespace

NodeIndex JointGraphBuilder::add(JointNode node) {
  if (node.mark == JointMark::None) node.mark = in_backward_ ? JointMark::IsBackward : JointMark::IsForward;
  graph_.nodes.push_back(std::move(node));
  return static_cast<NodeIndex>(graph_.nodes.size()) - 1;
}

JointResult JointGraphBuilder::tensor(int64_t bytes, int32_t storage) const {
  JointResult result{.kind = JointResult::Kind::Tensor, .bytes = bytes, .storage = storage};
  const bool floats = bytes % 4 == 0;
  result.dtype = floats ? "float32" : "uint8";
  result.shape = {Extent{.value = floats ? bytes / 4 : bytes}};
  result.strides = {Extent{.value = 1}};
  return result;
}

int32_t JointGraphBuilder::new_storage(int64_t bytes) {
  graph_.storage_bytes.push_back(bytes);
  return static_cast<int32_t>(graph_.storage_bytes.size()) - 1;
}

NodeIndex JointGraphBuilder::primal(int64_t bytes) {
  JointNode node{.name = "primals_" + std::to_string(++primals_), .kind = JointKind::Primal};
  node.out = tensor(bytes, new_storage(bytes));
  return add(std::move(node));
}

NodeIndex JointGraphBuilder::tangent(int64_t bytes) {
  JointNode node{.name = "tangents_" + std::to_string(++tangents_), .kind = JointKind::Tangent};
  node.out = tensor(bytes, new_storage(bytes));
  node.mark = JointMark::IsBackward;
  return add(std::move(node));
}

NodeIndex JointGraphBuilder::constant(int64_t bytes) {
  const std::string name = "_tensor_constant" + std::to_string(constants_++);
  JointNode node{.name = name, .kind = JointKind::GetAttr, .attribute = name};
  node.out = tensor(bytes, new_storage(bytes));
  return add(std::move(node));
}

JointNode JointGraphBuilder::call_node(const std::string& op, const std::vector<NodeIndex>& inputs, double flops) {
  JointNode node;
  node.op = op.find("::") == std::string::npos ? "aten::" + op : op;
  node.overload = "default";
  const std::string packet = node.op.substr(node.op.find("::") + 2);
  const int before = named_[packet]++;
  node.name = before == 0 ? packet : packet + "_" + std::to_string(before);
  for (const NodeIndex input : inputs) node.args.push_back(of_node(input));
  node.pointwise = is_pointwise(node.op);
  node.seeded = node.impure = is_seeded(node.op);
  node.flops = flops;
  return node;
}

NodeIndex JointGraphBuilder::call(const std::string& op, const std::vector<NodeIndex>& inputs, int64_t bytes,
                                  double flops) {
  JointNode node = call_node(op, inputs, flops);
  node.out = tensor(bytes, new_storage(bytes));
  return add(std::move(node));
}

NodeIndex JointGraphBuilder::view(const std::string& op, NodeIndex of, int64_t bytes) {
  JointNode node = call_node(op, {of}, 1);
  node.view = true;
  node.out = tensor(bytes < 0 ? at(of).out.bytes : bytes, at(of).out.storage);
  node.aliases_input = at(of).kind == JointKind::Primal ? of : at(of).aliases_input;
  return add(std::move(node));
}

std::vector<NodeIndex> JointGraphBuilder::getitems(NodeIndex call) {
  std::vector<NodeIndex> items;
  const size_t count = at(call).out.items.size();
  for (size_t i = 0; i < count; ++i) {
    const int before = named_["getitem"]++;
    JointNode node{.name = before == 0 ? "getitem" : "getitem_" + std::to_string(before), .kind = JointKind::GetItem};
    node.op = "operator::getitem";
    node.args = {of_node(call), {.kind = JointArgument::Kind::Integer, .integer = static_cast<int64_t>(i)}};
    node.out = at(call).out.items[i];
    node.aliases_input = at(call).aliases_input;
    items.push_back(add(std::move(node)));
  }
  return items;
}

std::vector<NodeIndex> JointGraphBuilder::multi(const std::string& op, const std::vector<NodeIndex>& inputs,
                                                const std::vector<int64_t>& bytes, double flops) {
  JointNode node = call_node(op, inputs, flops);
  node.multi_output = true;
  node.out.kind = JointResult::Kind::Tuple;
  for (const int64_t each : bytes) node.out.items.push_back(tensor(each, new_storage(each)));
  return getitems(add(std::move(node)));
}

std::vector<NodeIndex> JointGraphBuilder::split(NodeIndex of, int parts) {
  JointNode node = call_node("split", {of}, 1);
  node.view = node.multi_output = true;
  node.out.kind = JointResult::Kind::Tuple;
  for (int i = 0; i < parts; ++i) node.out.items.push_back(tensor(at(of).out.bytes / parts, at(of).out.storage));
  node.aliases_input = at(of).kind == JointKind::Primal ? of : at(of).aliases_input;
  return getitems(add(std::move(node)));
}

NodeIndex JointGraphBuilder::integer(const std::string& op, const std::vector<NodeIndex>& inputs, int64_t hint) {
  JointNode node = call_node(op, inputs, 1);
  node.out.kind = JointResult::Kind::Scalar;
  node.out.dtype = "int";
  node.out.scalar = {.value = hint, .expression = node.name};
  return add(std::move(node));
}

JointGraph JointGraphBuilder::graph(std::vector<NodeIndex> forward_outputs, std::vector<NodeIndex> gradients) const {
  JointGraph made = graph_;
  made.num_forward_outputs = static_cast<int>(forward_outputs.size());
  gradients.resize(primals_, kNoNode);
  made.outputs = std::move(forward_outputs);
  made.outputs.insert(made.outputs.end(), gradients.begin(), gradients.end());
  return made;
}

std::string to_text(const JointGraph& graph) {
  std::string text;
  for (const JointNode& node : graph.nodes) {
    text += node.name + " (";
    for_each_input(node, [&](NodeIndex input) { text += " " + graph.nodes[input].name; });
    text += " ) " + std::to_string(node.out.bytes) + " bytes, storage " + std::to_string(node.out.storage);
    if (node.recompute) text += ", tag " + std::to_string(static_cast<int>(*node.recompute));
    text += "\n";
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (i == 0) text += "outputs";
    if (i == static_cast<size_t>(graph.num_forward_outputs)) text += ", gradients";
    text += graph.outputs[i] == kNoNode ? " None" : " " + graph.nodes[graph.outputs[i]].name;
  }
  return text + "\n";
}

}  // namespace plumbline::testing

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

partition::JointArgument of_node(partition::NodeIndex node) {
  return {.kind = partition::JointArgument::Kind::Node, .node = node};
}

}  // namespace

partition::NodeIndex JointGraphBuilder::add(partition::JointNode node) {
  if (node.mark == partition::JointMark::None)
    node.mark = in_backward_ ? partition::JointMark::IsBackward : partition::JointMark::IsForward;
  graph_.nodes.push_back(std::move(node));
  return static_cast<partition::NodeIndex>(graph_.nodes.size()) - 1;
}

partition::JointResult JointGraphBuilder::tensor(int64_t bytes, int32_t storage) const {
  partition::JointResult result{.kind = partition::JointResult::Kind::Tensor, .bytes = bytes, .storage = storage};
  const bool floats = bytes % 4 == 0;
  result.dtype = floats ? types::Dtype::Float32 : types::Dtype::UInt8;
  result.shape = {partition::Extent{.value = floats ? bytes / 4 : bytes}};
  result.strides = {partition::Extent{.value = 1}};
  return result;
}

int32_t JointGraphBuilder::new_storage(int64_t bytes) {
  graph_.storage_bytes.push_back(bytes);
  return static_cast<int32_t>(graph_.storage_bytes.size()) - 1;
}

partition::NodeIndex JointGraphBuilder::primal(int64_t bytes) {
  partition::JointNode node{.name = "primals_" + std::to_string(++primals_), .kind = partition::JointKind::Primal};
  node.out = tensor(bytes, new_storage(bytes));
  return add(std::move(node));
}

partition::NodeIndex JointGraphBuilder::tangent(int64_t bytes) {
  partition::JointNode node{.name = "tangents_" + std::to_string(++tangents_), .kind = partition::JointKind::Tangent};
  node.out = tensor(bytes, new_storage(bytes));
  node.mark = partition::JointMark::IsBackward;
  return add(std::move(node));
}

partition::NodeIndex JointGraphBuilder::constant(int64_t bytes) {
  const std::string name = "_tensor_constant" + std::to_string(constants_++);
  partition::JointNode node{.name = name, .kind = partition::JointKind::GetAttr, .attribute = name};
  node.out = tensor(bytes, new_storage(bytes));
  return add(std::move(node));
}

partition::JointNode JointGraphBuilder::call_node(const std::string& op,
                                                  const std::vector<partition::NodeIndex>& inputs, double flops) {
  partition::JointNode node;
  node.op = op.find("::") == std::string::npos ? "aten::" + op : op;
  node.overload = "default";
  const std::string packet = node.op.substr(node.op.find("::") + 2);
  const int before = named_[packet]++;
  node.name = before == 0 ? packet : packet + "_" + std::to_string(before);
  for (const partition::NodeIndex input : inputs) node.args.push_back(of_node(input));
  node.pointwise = is_pointwise(node.op);
  node.seeded = node.impure = is_seeded(node.op);
  node.flops = flops;
  return node;
}

partition::NodeIndex JointGraphBuilder::call(const std::string& op, const std::vector<partition::NodeIndex>& inputs,
                                             int64_t bytes, double flops) {
  partition::JointNode node = call_node(op, inputs, flops);
  node.out = tensor(bytes, new_storage(bytes));
  return add(std::move(node));
}

partition::NodeIndex JointGraphBuilder::view(const std::string& op, partition::NodeIndex of, int64_t bytes) {
  partition::JointNode node = call_node(op, {of}, 1);
  node.view = true;
  node.out = tensor(bytes < 0 ? at(of).out.bytes : bytes, at(of).out.storage);
  node.aliases_input = at(of).kind == partition::JointKind::Primal ? of : at(of).aliases_input;
  return add(std::move(node));
}

std::vector<partition::NodeIndex> JointGraphBuilder::getitems(partition::NodeIndex call) {
  std::vector<partition::NodeIndex> items;
  const size_t count = at(call).out.items.size();
  for (size_t i = 0; i < count; ++i) {
    const int before = named_["getitem"]++;
    partition::JointNode node{.name = before == 0 ? "getitem" : "getitem_" + std::to_string(before),
                              .kind = partition::JointKind::GetItem};
    node.op = "operator::getitem";
    node.args = {of_node(call), {.kind = partition::JointArgument::Kind::Integer, .integer = static_cast<int64_t>(i)}};
    node.out = at(call).out.items[i];
    node.aliases_input = at(call).aliases_input;
    items.push_back(add(std::move(node)));
  }
  return items;
}

std::vector<partition::NodeIndex> JointGraphBuilder::multi(const std::string& op,
                                                           const std::vector<partition::NodeIndex>& inputs,
                                                           const std::vector<int64_t>& bytes, double flops) {
  partition::JointNode node = call_node(op, inputs, flops);
  node.multi_output = true;
  node.out.kind = partition::JointResult::Kind::Tuple;
  for (const int64_t each : bytes) node.out.items.push_back(tensor(each, new_storage(each)));
  return getitems(add(std::move(node)));
}

std::vector<partition::NodeIndex> JointGraphBuilder::split(partition::NodeIndex of, int parts) {
  partition::JointNode node = call_node("split", {of}, 1);
  node.view = node.multi_output = true;
  node.out.kind = partition::JointResult::Kind::Tuple;
  for (int i = 0; i < parts; ++i) node.out.items.push_back(tensor(at(of).out.bytes / parts, at(of).out.storage));
  node.aliases_input = at(of).kind == partition::JointKind::Primal ? of : at(of).aliases_input;
  return getitems(add(std::move(node)));
}

partition::NodeIndex JointGraphBuilder::integer(const std::string& op, const std::vector<partition::NodeIndex>& inputs,
                                                int64_t hint) {
  partition::JointNode node = call_node(op, inputs, 1);
  node.out.kind = partition::JointResult::Kind::Scalar;
  node.out.dtype = types::Dtype::Int64;
  node.out.scalar = {.value = hint, .expression = node.name};
  return add(std::move(node));
}

partition::JointGraph JointGraphBuilder::graph(std::vector<partition::NodeIndex> forward_outputs,
                                               std::vector<partition::NodeIndex> gradients) const {
  partition::JointGraph made = graph_;
  made.num_forward_outputs = static_cast<int>(forward_outputs.size());
  gradients.resize(primals_, partition::kNoNode);
  made.outputs = std::move(forward_outputs);
  made.outputs.insert(made.outputs.end(), gradients.begin(), gradients.end());
  return made;
}

std::string to_text(const partition::JointGraph& graph) {
  std::string text;
  for (const partition::JointNode& node : graph.nodes) {
    text += node.name + " (";
    partition::for_each_input(node, [&](partition::NodeIndex input) { text += " " + graph.nodes[input].name; });
    text += " ) " + std::to_string(node.out.bytes) + " bytes, storage " + std::to_string(node.out.storage);
    if (node.recompute) text += ", tag " + std::to_string(static_cast<int>(*node.recompute));
    text += "\n";
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (i == 0) text += "outputs";
    if (i == static_cast<size_t>(graph.num_forward_outputs)) text += ", gradients";
    text += graph.outputs[i] == partition::kNoNode ? " None" : " " + graph.nodes[graph.outputs[i]].name;
  }
  return text + "\n";
}

}  // namespace plumbline::testing

#include "runtime/partition/testing/hand_trace.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/graph/run/boxed_arguments.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/run/bind_call.h"
#include "runtime/partition/trace/joint_argument.h"
#include "runtime/types/aten.h"

namespace plumbline::testing {
namespace {

bool is_backward(const partition::JointGraph& graph, partition::NodeIndex node) {
  bool found = graph.nodes[node].kind == partition::JointKind::Tangent;
  partition::for_each_input(graph.nodes[node],
                            [&](partition::NodeIndex input) { found = found || is_backward(graph, input); });
  return found;
}

}  // namespace

partition::NodeIndex HandTrace::add(partition::JointNode node, std::vector<at::Tensor> values) {
  if (node.name.empty()) node.name = node.op.substr(node.op.find("::") + 2) + "_" + std::to_string(values_.size());
  if (values.size() == 1 && !node.multi_output) {
    node.out = result_of(values[0]);
  } else {
    node.out.kind = partition::JointResult::Kind::Tuple;
    for (const at::Tensor& value : values) node.out.items.push_back(result_of(value));
  }
  trace_.graph.nodes.push_back(std::move(node));
  values_.push_back(std::move(values));
  return static_cast<partition::NodeIndex>(values_.size()) - 1;
}

partition::JointResult HandTrace::result_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  partition::JointResult result{.kind = partition::JointResult::Kind::Tensor,
                                .dtype = types::from_aten(tensor.scalar_type())};
  for (const int64_t size : tensor.sizes()) result.shape.push_back({size, ""});
  for (const int64_t stride : tensor.strides()) result.strides.push_back({stride, ""});
  result.bytes = static_cast<int64_t>(tensor.nbytes());
  const auto [storage, is_new] =
      storages_.emplace(tensor.storage().unsafeGetStorageImpl(), static_cast<int32_t>(storages_.size()));
  if (is_new) trace_.graph.storage_bytes.push_back(static_cast<int64_t>(tensor.storage().nbytes()));
  result.storage = storage->second;
  return result;
}

partition::NodeIndex HandTrace::primal(const at::Tensor& tensor, partition::PrimalSource source) {
  trace_.primals.push_back(source);
  return add({.name = "primals_" + std::to_string(trace_.primals.size()), .kind = partition::JointKind::Primal},
             {tensor});
}

partition::NodeIndex HandTrace::attribute(graph::AttributeKind kind, const std::string& name,
                                          const at::Tensor& tensor) {
  graph::Attribute made;
  made.kind = kind, made.name = name, made.tensor = tensor;
  graph_.attributes.push_back(std::move(made));
  trace_.static_inputs.push_back(static_cast<int>(trace_.primals.size()));
  return primal(tensor, {partition::PrimalSource::Kind::Attribute, static_cast<int>(graph_.attributes.size()) - 1});
}

partition::NodeIndex HandTrace::input(const at::Tensor& tensor) {
  graph_.inputs.push_back({"input" + std::to_string(graph_.inputs.size()), graph::kNoValue});
  return primal(tensor, {partition::PrimalSource::Kind::Input, static_cast<int>(graph_.inputs.size()) - 1});
}

partition::NodeIndex HandTrace::tangent(int output, const at::Tensor& like) {
  trace_.tangent_of.push_back(output);
  return add({.name = "tangents_" + std::to_string(trace_.tangent_of.size()), .kind = partition::JointKind::Tangent},
             {at::empty_like(like.detach(), at::MemoryFormat::Contiguous)});
}

partition::NodeIndex HandTrace::call(const std::string& op, const std::string& overload, Arguments arguments,
                                     Keywords keywords) {
  partition::JointNode node;
  node.op = op, node.overload = overload, node.args = std::move(arguments), node.kwargs = std::move(keywords);
  const graph::Node bound = partition::bind_call(trace_.graph, node);
  torch::jit::Stack stack = graph::boxed_arguments(
      bound, [&](partition::NodeIndex operand) -> c10::IValue { return values_[operand].at(0); });
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    bound.op->callBoxed(&stack);
  }
  node.multi_output = stack.size() > 1 || stack.front().isTensorList();
  node.seeded = bound.op->hasTag(at::Tag::nondeterministic_seeded);
  std::vector<at::Tensor> values;
  if (stack.front().isTensorList())
    values = stack.front().toTensorVector();
  else
    for (const c10::IValue& value : stack) values.push_back(value.toTensor());
  return add(std::move(node), std::move(values));
}

partition::NodeIndex HandTrace::item(partition::NodeIndex call, int index) {
  partition::JointNode getitem;
  getitem.kind = partition::JointKind::GetItem, getitem.op = "operator::getitem";
  getitem.args = {node(call), number(index)};
  return add(std::move(getitem), {values_[call].at(index)});
}

void HandTrace::finish(std::vector<partition::NodeIndex> outputs, std::vector<partition::NodeIndex> gradients,
                       const std::vector<std::pair<partition::NodeIndex, partition::NodeIndex>>& written) {
  trace_.num_outputs = static_cast<int>(outputs.size());
  for (const auto& [primal, value] : written) {
    trace_.written.push_back(primal);
    outputs.push_back(value);
  }
  trace_.graph.num_forward_outputs = static_cast<int>(outputs.size());
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  trace_.graph.outputs = std::move(outputs);
}

/// The calls that compute `outputs` from `given`.
std::vector<partition::NodeIndex> HandTrace::needed(const std::vector<partition::NodeIndex>& outputs,
                                                    const std::vector<partition::NodeIndex>& given) const {
  std::vector<char> wanted(values_.size(), 0);
  for (const partition::NodeIndex output : outputs)
    if (output != partition::kNoNode) wanted[output] = 1;
  std::vector<partition::NodeIndex> result;
  for (partition::NodeIndex i = static_cast<partition::NodeIndex>(values_.size()) - 1; i >= 0; --i) {
    if (!wanted[i] || std::find(given.begin(), given.end(), i) != given.end()) continue;
    result.push_back(i);
    partition::for_each_input(trace_.graph.nodes[i], [&](partition::NodeIndex input) { wanted[input] = 1; });
  }
  std::reverse(result.begin(), result.end());
  return result;
}

partition::Partition HandTrace::partition(std::vector<partition::NodeIndex> saved) const {
  partition::Partition partition;
  partition.graph = trace_.graph;
  const partition::JointGraph& graph = partition.graph;
  const auto split = [&](const std::vector<partition::NodeIndex>& nodes, std::vector<partition::NodeIndex>& inputs) {
    std::vector<partition::NodeIndex> ops;
    for (const partition::NodeIndex i : nodes) (graph.nodes[i].is_input() ? inputs : ops).push_back(i);
    return ops;
  };
  std::vector<partition::NodeIndex> inputs;
  partition::Subgraph& backward = partition.backward;
  backward.outputs.assign(graph.backward_outputs().begin(), graph.backward_outputs().end());
  backward.ops = split(needed(backward.outputs, saved), inputs);
  for (const partition::NodeIndex i : inputs)
    if (graph.nodes[i].kind == partition::JointKind::Primal) saved.push_back(i);
  backward.inputs = saved;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == partition::JointKind::Tangent)
      backward.inputs.push_back(static_cast<partition::NodeIndex>(i));

  partition::Subgraph& forward = partition.forward;
  forward.outputs.assign(graph.forward_outputs().begin(), graph.forward_outputs().end());
  forward.outputs.insert(forward.outputs.end(), saved.begin(), saved.end());
  forward.ops = split(needed(forward.outputs, {}), inputs);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == partition::JointKind::Primal)
      forward.inputs.push_back(static_cast<partition::NodeIndex>(i));
  for (const partition::NodeIndex i : forward.ops)
    PLUMBLINE_CHECK(!is_backward(graph, i), "a forward value needs a tangent");
  for (const partition::NodeIndex i : forward.ops)
    if (draws_random_numbers(graph.nodes[i]) &&
        std::find(backward.ops.begin(), backward.ops.end(), i) != backward.ops.end())
      partition.replayed.push_back(i);
  partition.saved = std::move(saved);
  return partition;
}

}  // namespace plumbline::testing

#include "runtime/partition/trace/joint_recorder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/item.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "runtime/capture/capture.h"
#include "runtime/graph/graph.h"
#include "runtime/partition/joint/clean.h"
#include "runtime/partition/joint/joint_flops.h"
#include "runtime/partition/trace/joint_argument.h"
#include "runtime/partition/trace/layout.h"

namespace plumbline::partition {
namespace {

std::span<const c10::IValue> arguments_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  return {stack.data() + stack.size() - count, count};
}

bool gives_tensors(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    const c10::Type& type = *result.type();
    return type.kind() == c10::TypeKind::TensorType || type.kind() == c10::TypeKind::ListType;
  });
}

/// A number that is no more than one to the rules of type promotion, as `x * 2.0` passes it.
JointArgument number(const at::Tensor& tensor) { return joint_argument(tensor.item(), *c10::NumberType::get(), {}); }

/// Whether bernoulli_ draws in the order of memory. On Intel's processors LibTorch leaves it to MKL, which draws in
/// that of the indices.
bool fills_in_memory_order(const at::Tensor& tensor) {
  static const bool on_cpu = [] {
    const auto drawn = [](const at::Tensor& filled) {
      return filled.bernoulli_(0.5, at::detail::createCPUGenerator(1));
    };
    return at::equal(drawn(at::empty({64, 8}).t()).t(), drawn(at::empty({64, 8})));
  }();
  return on_cpu || !tensor.is_cpu();
}

JointResult scalar_result(const c10::IValue& value) {
  JointResult result;
  result.kind = JointResult::Kind::Scalar;
  result.dtype = value.isDouble() ? types::Dtype::Float64 : value.isBool() ? types::Dtype::Bool : types::Dtype::Int64;
  if (value.isInt()) result.scalar.value = value.toInt();
  return result;
}

}  // namespace

// --- tensors and nodes -----------------------------------------------------------------------------------------------

NodeIndex JointRecorder::add(JointNode node) {
  graph_.nodes.push_back(std::move(node));
  return static_cast<NodeIndex>(graph_.nodes.size()) - 1;
}

int32_t JointRecorder::storage_number(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.layout() != c10::kStrided)
    refuse("it gives a tensor without strides (sparse or another layout); joint graphs have dense ones only");
  const int32_t number = storages_.number_of(tensor);
  if (static_cast<size_t>(number) == storage_primal_.size()) {  // a new one
    storage_primal_.push_back(kNoNode);
    graph_.storage_bytes.push_back(static_cast<int64_t>(tensor.storage().nbytes()));
  }
  return number;
}

JointResult JointRecorder::result_of(const at::Tensor& tensor) {
  const int32_t storage = storage_number(tensor);
  JointResult result = joint_result(tensor);
  result.storage = storage;
  return result;
}

NodeIndex JointRecorder::add_input(JointKind kind, const at::Tensor& tensor) {
  const auto same_kind = [&](const JointNode& node) { return node.kind == kind; };
  const auto before = std::count_if(graph_.nodes.begin(), graph_.nodes.end(), same_kind);
  const bool primal = kind == JointKind::Primal;
  JointNode node;
  node.kind = kind;
  node.name = names_.unique((primal ? "primals_" : "tangents_") + std::to_string(before + 1));
  node.mark = primal ? JointMark::IsForward : JointMark::IsBackward;
  node.out = result_of(tensor);
  NodeIndex& first = storage_primal_[node.out.storage];
  const NodeIndex index = add(std::move(node));
  if (primal && first == kNoNode) first = index;
  values_.set(tensor, index);
  return index;
}

NodeIndex JointRecorder::add_node(JointNode node, std::span<const at::Tensor> tensors) {
  const bool tuple = node.out.kind == JointResult::Kind::Tuple;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined()) (tuple ? node.out.items[i] : node.out).storage = storage_number(tensors[i]);
  const bool primal = node.kind == JointKind::Primal;
  const int32_t storage = node.out.storage;
  if (storage >= 0) node.aliases_input = primal ? kNoNode : storage_primal_[storage];
  const NodeIndex index = add(std::move(node));
  if (primal && storage >= 0 && storage_primal_[storage] == kNoNode) storage_primal_[storage] = index;
  if (!tuple && !tensors.empty() && tensors[0].defined()) values_.set(tensors[0], index);
  return index;
}

void JointRecorder::add_constant(const std::string& name, const at::Tensor& tensor) {
  constants_.emplace(name, tensor);
  named_constants_.emplace(tensor.unsafeGetTensorImpl(), name);
}

NodeIndex JointRecorder::node_of(const at::Tensor& tensor) {
  if (const auto known = values_.find(tensor)) return *known;
  const auto named = named_constants_.find(tensor.unsafeGetTensorImpl());
  if (named == named_constants_.end() && storages_.find(tensor))
    refuse("a tensor " + graph::describe(tensor) +
           " shares its memory with a value of the graph unseen by the "
           "dispatcher (.data() or variable_data()); use detach()");
  JointNode node;
  node.kind = JointKind::GetAttr;
  node.attribute =
      named != named_constants_.end() ? named->second : "_tensor_constant" + std::to_string(constants_.size());
  node.name = names_.unique(node.attribute);
  constants_.emplace(node.attribute, tensor);
  node.mark = mark_;
  node.out = result_of(tensor);
  const NodeIndex index = add(std::move(node));
  values_.set(tensor, index);
  return index;
}

// --- calls -----------------------------------------------------------------------------------------------------------

void JointRecorder::refuse(const std::string& what) {
  const std::string op = op_ ? c10::toString(op_->operator_name()) : place_.empty() ? "the outputs" : "";
  refusal_ = "trace: at " + op + (op.empty() || place_.empty() ? "" : ", ") + place_ + ": " + what;
  throw capture::CaptureError(*refusal_);
}

/// Functionalisation asks for the shapes of views by calling them on meta tensors of its own; and some calls only ask.
bool JointRecorder::is_shape_query(const c10::OperatorHandle& op, const torch::jit::Stack& stack) const {
  bool unknown_meta = false;
  for (const c10::IValue& argument : arguments_of(op, stack))
    capture::for_each_tensor(argument,
                             [&](const at::Tensor& t) { unknown_meta = unknown_meta || (t.is_meta() && !knows(t)); });
  return unknown_meta ||
         (!gives_tensors(op.schema()) && !op.schema().is_mutable() && !op.hasTag(at::Tag::data_dependent_output));
}

void JointRecorder::check(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string& name = op.schema().name();
  if (!gives_tensors(op.schema()) && op.hasTag(at::Tag::data_dependent_output))
    refuse("it reads a number from a tensor, which the trace would freeze; keep the computation in tensors");
  if (op.schema().is_mutable())
    refuse("it writes into a tensor in a way that functionalisation does not know; write it out of place");
  if (name == "aten::cudnn_batch_norm" || name == "aten::miopen_batch_norm")
    refuse("it writes its running statistics unseen; run with cuDNN off (at::globalContext().setUserEnabledCuDNN)");
  if (name == "plumbline::get_random_state" || name == "plumbline::set_random_state")
    refuse("it handles the state of the random generator, which a joint graph keeps by itself");
  if (name == "aten::normal_functional") {
    const at::Tensor& self = arguments_of(op, stack)[0].toTensor();
    // From 16 elements on, the kernel has another algorithm for what is contiguous; a copy without gaps is.
    if (!self.is_contiguous() && is_in_memory_order(self) && self.numel() >= 16)
      refuse("it fills a part of a tensor, and a joint graph would draw other numbers; fill a new one and copy_() it");
  }
  if (!op.hasTag(at::Tag::dynamic_output_shape)) return;
  bool depends = name != "aten::index";
  if (!depends)
    capture::for_each_tensor(arguments_of(op, stack)[1], [&](const at::Tensor& index) {
      depends = depends || index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
    });
  if (depends)
    refuse(
        "the shape of its result depends on the data, which the trace would freeze; use where() or a mask by "
        "multiplication");
}

JointNode JointRecorder::make_node(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  JointNode node;
  const c10::FunctionSchema& schema = op.schema();
  node.op = schema.name();
  node.overload = schema.overload_name().empty() ? "default" : schema.overload_name();
  node.mark = mark_;
  node.pointwise = op.hasTag(at::Tag::pointwise);
  node.core = op.hasTag(at::Tag::core);
  node.seeded = op.hasTag(at::Tag::nondeterministic_seeded);
  node.inplace_view = op.hasTag(at::Tag::inplace_view);
  node.data_dependent_output = op.hasTag(at::Tag::data_dependent_output);
  node.dynamic_output_shape = op.hasTag(at::Tag::dynamic_output_shape);
  node.writes = schema.is_mutable();
  node.view = std::ranges::any_of(schema.returns(), capture::is_view);
  node.impure = node.writes || node.seeded;
  node.no_grad = mark_ == JointMark::IsForward && !c10::GradMode::is_enabled();

  const auto tensor = [&](const at::Tensor& t) {
    if (!knows(t) && t.unsafeGetTensorImpl()->is_wrapped_number()) return number(t);
    return JointArgument{.kind = JointArgument::Kind::Node, .node = node_of(t)};
  };
  const std::span<const c10::IValue> values = arguments_of(op, stack);
  for (size_t i = 0; i < values.size(); ++i) {
    const c10::Argument& parameter = schema.arguments()[i];
    JointArgument argument = joint_argument(values[i], *parameter.real_type(), tensor);
    if (argument.kind == JointArgument::Kind::Other)
      refuse("argument '" + parameter.name() + "' is a " + argument.text + ", which a joint graph cannot hold");
    if (!parameter.kwarg_only())
      node.args.push_back(std::move(argument));
    else if (!is_default(argument, parameter))
      node.kwargs.emplace_back(parameter.name(), std::move(argument));
  }
  while (!node.args.empty() && is_default(node.args.back(), schema.arguments()[node.args.size() - 1]))
    node.args.pop_back();
  return node;
}

std::vector<NodeIndex> JointRecorder::add_call(JointNode node, const c10::OperatorHandle& op,
                                               const torch::jit::Stack& stack) {
  const size_t count = op.schema().returns().size();
  const std::span<const c10::IValue> returned{stack.data() + stack.size() - count, count};
  node.name = names_.unique(name_base(node.op));
  const auto aliased = [&](const JointResult& result) { return storage_primal_[result.storage]; };
  if (count == 1 && returned[0].isTensor()) {
    const at::Tensor& tensor = returned[0].toTensor();
    if (!tensor.defined()) return {kNoNode};
    node.out = result_of(tensor);
    node.aliases_input = aliased(node.out);
    const NodeIndex index = add(std::move(node));
    values_.set(tensor, index);
    return {index};
  }
  std::vector<c10::IValue> items(returned.begin(), returned.end());
  if (count == 1 && returned[0].isTensorList()) items = returned[0].toListRef().vec();
  node.multi_output = true;
  node.out.kind = JointResult::Kind::Tuple;
  for (const c10::IValue& item : items) {
    if (item.isList()) refuse("it returns a list among several results, which a joint graph cannot hold");
    if (item.isTensor())
      node.out.items.push_back(item.toTensor().defined() ? result_of(item.toTensor()) : JointResult{});
    else
      node.out.items.push_back(item.isNone() ? JointResult{} : scalar_result(item));
  }
  const JointMark mark = node.mark;
  const std::vector<JointResult> results = node.out.items;
  const NodeIndex index = add(std::move(node));
  std::vector<NodeIndex> nodes;
  for (size_t i = 0; i < items.size(); ++i) {
    nodes.push_back(kNoNode);
    if (results[i].kind != JointResult::Kind::Tensor) continue;
    JointNode get;
    get.kind = JointKind::GetItem;
    get.op = "operator::getitem";
    get.name = names_.unique("getitem");
    get.args = {{.kind = JointArgument::Kind::Node, .node = index},
                {.kind = JointArgument::Kind::Integer, .integer = static_cast<int64_t>(i)}};
    get.out = results[i];
    get.mark = mark;
    get.aliases_input = aliased(get.out);
    nodes.back() = add(std::move(get));
    values_.set(items[i].toTensor(), nodes.back());
  }
  return nodes;
}

/// Of a write, functionalisation asks only whether it would be refused; not every operator has an answer to that
/// (logical_and_ has none), and the write was accepted when the graph was captured.
void JointRecorder::call_unrecorded(const c10::OperatorHandle& op, torch::jit::Stack* stack) const {
  const bool write = op.schema().is_mutable() && !op.hasTag(at::Tag::inplace_view) && op.schema().returns().size() == 1;
  if (!write) return op.callBoxed(stack);
  c10::IValue written = arguments_of(op, *stack)[0];
  torch::jit::drop(*stack, op.schema().arguments().size());
  stack->push_back(std::move(written));
}

void JointRecorder::record(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  check(op, *stack);
  JointNode node = make_node(op, *stack);
  carry_out(op, stack);
  add_call(std::move(node), op, *stack);
}

void JointRecorder::record_batch_norm(torch::jit::Stack* stack) {
  static const c10::OperatorHandle functional =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_native_batch_norm_legit_functional", "");
  const std::span<const c10::IValue> arguments = arguments_of(functional, *stack);
  const std::array statistics{arguments[3].toTensor(), arguments[4].toTensor()};
  for (const at::Tensor& tensor : statistics)
    if (graph_.nodes[node_of(tensor)].view)
      refuse("its running statistics are a view of another tensor; give a tensor of their own");
  JointNode node = make_node(functional, *stack);
  carry_out(functional, stack);
  const std::vector<NodeIndex> results = add_call(std::move(node), functional, *stack);
  values_.set(statistics[0], results[3]);
  values_.set(statistics[1], results[4]);
  torch::jit::drop(*stack, 2);
}

at::Tensor JointRecorder::record_permute(const at::Tensor& tensor, const std::vector<int64_t>& order) {
  static const c10::OperatorHandle permute = c10::Dispatcher::singleton().findSchemaOrThrow("aten::permute", "");
  torch::jit::Stack stack{tensor, order};
  record(permute, &stack);
  return stack.back().toTensor();
}

void JointRecorder::record_bernoulli(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::IValue& self = (*stack)[stack->size() - op.schema().arguments().size()];
  const std::vector<int64_t> order = memory_order(self.toTensor().sizes(), self.toTensor().strides());
  self = record_permute(self.toTensor(), order);
  record(op, stack);
  stack->back() = record_permute(stack->back().toTensor(), inverse(order));
}

void JointRecorder::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchSkipFunctionalize inner;
  if (is_shape_query(op, *stack)) return call_unrecorded(op, stack);
  op_ = &op;
  const std::span<const c10::IValue> arguments = arguments_of(op, *stack);
  const bool hides_writes = op.schema().name() == "aten::native_batch_norm" && arguments[5].toBool() &&
                            arguments[3].isTensor() && arguments[3].toTensor().defined();
  // A program that calls bernoulli itself gets what that draws.
  const bool fills =
      op.schema().name() == "aten::bernoulli" && op.schema().overload_name() == "p" && called_ != op.operator_name();
  if (hides_writes)
    record_batch_norm(stack);
  else if (fills && !is_in_memory_order(arguments[0].toTensor()) && fills_in_memory_order(arguments[0].toTensor()))
    record_bernoulli(op, stack);
  else
    record(op, stack);
  op_ = nullptr;
}

// --- the graph -------------------------------------------------------------------------------------------------------

JointGraph JointRecorder::finish(const std::vector<NodeIndex>& forward_outputs,
                                 const std::vector<NodeIndex>& gradients) {
  std::vector<JointNode>& nodes = graph_.nodes;
  std::vector<NodeIndex> moved(nodes.size(), kNoNode);
  std::vector<JointNode> kept;
  kept.reserve(nodes.size());
  const auto keep = [&](const auto& belongs) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (moved[i] != kNoNode || !belongs(nodes[i])) continue;
      moved[i] = static_cast<NodeIndex>(kept.size());
      kept.push_back(std::move(nodes[i]));
    }
  };
  keep([](const JointNode& node) { return node.kind == JointKind::Primal; });
  keep([](const JointNode& node) { return node.is_input(); });
  keep([](const JointNode&) { return true; });
  const auto to = [&](NodeIndex node) { return node == kNoNode ? kNoNode : moved[node]; };
  for (JointNode& node : kept) {
    map_inputs(node, to);
    node.aliases_input = to(node.aliases_input);
  }
  nodes = std::move(kept);
  for (const std::vector<NodeIndex>* outputs : {&forward_outputs, &gradients})
    for (const NodeIndex output : *outputs) graph_.outputs.push_back(to(output));
  graph_.num_forward_outputs = static_cast<int>(forward_outputs.size());
  JointGraph alive = remove_dead_nodes(std::move(graph_)).graph;
  count_flops(alive);
  return alive;
}

}  // namespace plumbline::partition

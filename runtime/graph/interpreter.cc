#include "runtime/graph/interpreter.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <map>

#include "runtime/error.h"
#include "runtime/graph/autocast_scope.h"
#include "runtime/graph/error_text.h"
#include "runtime/graph/text.h"

namespace plumbline::graph {
namespace {

/// Changes the thread's grad mode only when it differs, and puts it back.
class GradModeScope {
 public:
  GradModeScope() : ambient_(c10::GradMode::is_enabled()), current_(ambient_) {}
  ~GradModeScope() {
    if (current_ != ambient_) c10::GradMode::set_enabled(ambient_);
  }
  GradModeScope(const GradModeScope&) = delete;
  GradModeScope& operator=(const GradModeScope&) = delete;
  void set(bool captured) {
    const bool wanted = ambient_ && captured;
    if (wanted == current_) return;
    c10::GradMode::set_enabled(wanted);
    current_ = wanted;
  }

 private:
  bool ambient_, current_;
};

at::ScalarType number_dtype(ValueKind kind) {
  return kind == ValueKind::Int ? at::kLong : kind == ValueKind::Bool ? at::kBool : at::kDouble;
}

c10::IValue number_in(const at::Tensor& tensor, ValueKind kind) {
  if (kind == ValueKind::Int) return tensor.item<int64_t>();
  if (kind == ValueKind::Bool) return tensor.item<bool>();
  return tensor.item<double>();
}

/// A number where the operator takes a tensor, as Python's `x * 2.0` passes it: a tensor that is no more than a number
/// to the rules of type promotion.
c10::IValue wrapped_number(const c10::IValue& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

bool takes_tensor(const c10::Argument& parameter) {
  const c10::Type& type = *parameter.type();
  if (type.kind() != c10::TypeKind::OptionalType) return type.kind() == c10::TypeKind::TensorType;
  return type.castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

std::vector<int32_t> last_uses(const Graph& graph) {
  std::vector<int32_t> last(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for_each_use(graph.nodes[i], [&](ValueId v) { last[v] = static_cast<int32_t>(i); });
  return last;
}

}  // namespace

Interpreter::Interpreter(const Graph& graph)
    : autocast_(graph.autocast), slots_(graph.values.size()), is_attribute_(graph.values.size(), 0) {
  std::vector<char> pinned(graph.values.size(), 0);
  for (const Attribute& attribute : graph.attributes) {
    if (attribute.value == kNoValue) continue;
    PLUMBLINE_CHECK(attribute.tensor.defined(), "attribute \"" + attribute.name + "\" is not bound to a tensor");
    slots_[attribute.value] = attribute.tensor;
    is_attribute_[attribute.value] = pinned[attribute.value] = 1;
  }
  for (const GraphInput& input : graph.inputs) {
    inputs_.push_back(input.value);
    input_kinds_.push_back(graph.values[input.value].kind);
  }
  for (ValueId v : graph.outputs) {
    outputs_.push_back(v);
    output_kinds_.push_back(v == kNoValue ? ValueKind::Tensor : graph.values[v].kind);
    if (v != kNoValue) pinned[v] = 1;
  }
  const std::vector<int32_t> last = last_uses(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.is_split()) continue;
    Instruction in{
        i, *node.op, {}, {}, {}, node.results, {}, node.grad_enabled, node.autocast, {}, to_text(graph, node)};
    for (const auto& branch : node.branches) in.branches.emplace_back(*branch);
    in.arguments.resize(node.arguments.size());
    std::map<ValueId, int> uses;
    for_each_use(node, [&](ValueId v) { ++uses[v]; });
    for (size_t a = 0; a < node.arguments.size(); ++a) {
      const Argument& argument = node.arguments[a];
      const auto position = static_cast<uint32_t>(a);
      if (argument.kind == Argument::Kind::Constant) {
        const bool number_for_tensor = argument.constant.isScalar() && takes_tensor(node.op->schema().arguments()[a]);
        in.arguments[a] = number_for_tensor ? wrapped_number(argument.constant) : argument.constant;
      } else if (argument.kind == Argument::Kind::Value) {
        const ValueId v = argument.values[0];
        const bool moves = !pinned[v] && last[v] == static_cast<int32_t>(i) && uses[v] == 1;
        const bool number_for_tensor =
            graph.values[v].kind != ValueKind::Tensor && takes_tensor(node.op->schema().arguments()[a]);
        in.fills.push_back({position, v, moves, number_for_tensor});
        if (moves) uses[v] = 0;
      } else {
        in.arguments[a] = argument.constant;
        in.list_fills.push_back({position, argument.kind, argument.values});
      }
    }
    for (const auto& [v, count] : uses)
      if (count > 0 && !pinned[v] && last[v] == static_cast<int32_t>(i)) in.released.push_back(v);
    for_each_definition(node, [&](ValueId v) {
      if (last[v] < 0 && !pinned[v]) in.released.push_back(v);
    });
    instructions_.push_back(std::move(in));
  }
  stack_.reserve(64);
}

void Interpreter::fill(const Instruction& in) {
  stack_.clear();
  stack_.insert(stack_.end(), in.arguments.begin(), in.arguments.end());
  for (const Fill& fill : in.fills) {
    if (fill.last_use)
      stack_[fill.position] = std::move(slots_[fill.slot]);
    else
      stack_[fill.position] = slots_[fill.slot];
    if (fill.number_for_tensor) stack_[fill.position] = wrapped_number(stack_[fill.position]);
  }
  for (const ListFill& fill : in.list_fills) {
    if (fill.kind == Argument::Kind::OptionalTensorList) {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(fill.slots.size());
      for (Slot s : fill.slots) {
        if (s == kNoValue)
          list.push_back(std::nullopt);
        else
          list.push_back(slots_[s].toTensor());
      }
      stack_[fill.position] = std::move(list);
    } else if (fill.kind == Argument::Kind::TensorList) {
      c10::List<at::Tensor> list;
      list.reserve(fill.slots.size());
      for (Slot s : fill.slots) list.push_back(s == kNoValue ? at::Tensor() : slots_[s].toTensor());
      stack_[fill.position] = std::move(list);
    } else {
      c10::impl::GenericList list = stack_[fill.position].toList().copy();
      for (size_t k = 0; k < fill.slots.size(); ++k)
        if (fill.slots[k] != kNoValue) list.set(k, slots_[fill.slots[k]]);
      stack_[fill.position] = std::move(list);
    }
  }
}

/// The operands of a cond are a list of values; the branch that its predicate chooses runs on them.
void Interpreter::choose_branch(Instruction& in) {
  const c10::IValue pred = slots_[in.fills.at(0).slot];
  Interpreter& branch = in.branches[(pred.isTensor() ? pred.toTensor().item<bool>() : pred.toBool()) ? 0 : 1];
  const std::vector<Slot>& operands = in.list_fills.at(0).slots;
  for (size_t i = 0; i < operands.size(); ++i) branch.slots_[branch.inputs_[i]] = slots_[operands[i]];
  branch.carry_out(nullptr);
  c10::List<at::Tensor> results;
  for (Slot s : branch.outputs_) results.push_back(s == kNoValue ? at::Tensor() : branch.slots_[s].toTensor());
  branch.clear();
  stack_.clear();
  stack_.emplace_back(std::move(results));
}

void Interpreter::execute(Instruction& in) {
  if (in.branches.empty()) {
    fill(in);
    in.op.callBoxed(&stack_);
  } else {
    choose_branch(in);
  }
  for (size_t r = 0; r < in.results.size(); ++r) {
    const Result& result = in.results[r];
    if (!result.is_list) {
      if (result.values[0] != kNoValue) slots_[result.values[0]] = std::move(stack_[r]);
      continue;
    }
    std::vector<at::Tensor> list = stack_[r].toTensorVector();
    if (list.size() != result.values.size())
      throw Error("returned a list of " + std::to_string(list.size()) + " tensors; at capture it had " +
                  std::to_string(result.values.size()));
    for (size_t k = 0; k < list.size(); ++k)
      if (result.values[k] != kNoValue) slots_[result.values[k]] = std::move(list[k]);
  }
}

void Interpreter::carry_out(NodeObserver* observer) {
  GradModeScope grad_mode;
  AutocastScope autocast(autocast_);
  for (Instruction& in : instructions_) {
    grad_mode.set(in.grad_enabled);
    autocast.set(in.autocast);
    try {
      if (observer) observer->before(in.node, *this);
      execute(in);
      if (observer) observer->after(in.node, *this);
    } catch (const std::exception& error) {
      clear();
      throw Error("running " + in.text + ": " + error_text(error));
    }
    for (Slot s : in.released) slots_[s] = c10::IValue();
  }
}

void Interpreter::run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs, NodeObserver* observer) {
  PLUMBLINE_CHECK(inputs.size() == inputs_.size(),
                  std::to_string(inputs.size()) + " inputs for a graph that takes " + std::to_string(inputs_.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    slots_[inputs_[i]] = input_kinds_[i] == ValueKind::Tensor ? inputs[i] : number_in(inputs[i], input_kinds_[i]);
  carry_out(observer);
  outputs.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] == kNoValue)
      outputs[i] = at::Tensor();
    else if (output_kinds_[i] == ValueKind::Tensor)
      outputs[i] = slots_[outputs_[i]].toTensor();
    else
      outputs[i] = at::scalar_tensor(slots_[outputs_[i]].toScalar(), number_dtype(output_kinds_[i]));
  }
  for (Slot s : outputs_)
    if (s != kNoValue && !is_attribute_[s]) slots_[s] = c10::IValue();
  for (Slot s : inputs_) slots_[s] = c10::IValue();
  stack_.clear();
}

void Interpreter::clear() {
  for (size_t s = 0; s < slots_.size(); ++s)
    if (!is_attribute_[s]) slots_[s] = c10::IValue();
  stack_.clear();
}

}  // namespace plumbline::graph

#include "runtime/capture/recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/capture/interpose.h"
#include "runtime/capture/reads_content.h"
#include "runtime/capture/takes_gradient.h"
#include "runtime/text/in_quotes.h"

namespace plumbline::capture {
namespace {

bool is_tensor_like(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  return type.kind() == c10::TypeKind::ListType &&
         type.castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

const torch::autograd::Node* grad_fn_of(const at::Tensor& tensor) {
  return tensor.is_view() ? nullptr : tensor.grad_fn().get();
}

/// The region in which this thread calls: all calls with the same settings have one. -1 outside of autocast, or where
/// it is disabled again.
int32_t autocast_region(std::vector<graph::AutocastRegion>& known) {
  if (!at::autocast::is_autocast_enabled(at::kCPU)) return -1;
  const graph::AutocastRegion region{.device = at::kCPU,
                                     .dtype = at::autocast::get_autocast_dtype(at::kCPU),
                                     .cache = at::autocast::is_autocast_cache_enabled()};
  const auto found = std::ranges::find(known, region);
  const auto index = static_cast<int32_t>(found - known.begin());
  if (found == known.end()) known.push_back(region);
  return index;
}

}  // namespace

Recorder::Recorder(const std::vector<NamedTensor>& parameters, const std::vector<NamedTensor>& buffers,
                   const std::vector<NamedTensor>& inputs) {
  add_attributes(parameters, graph::AttributeKind::Parameter);
  add_attributes(buffers, graph::AttributeKind::Buffer);
  for (const NamedTensor& input : inputs) {
    if (!input.tensor.defined()) throw CaptureError("capture: input " + in_quotes(input.name) + " is undefined");
    const c10::TensorImpl* impl = input.tensor.unsafeGetTensorImpl();
    for (const graph::GraphInput& earlier : graph_.inputs)
      if (values_.find(input.tensor) == earlier.value)
        throw CaptureError(
            "capture: inputs " + in_quotes(earlier.name) + " and " + in_quotes(input.name) +
            " are the same tensor, so a replay could not tell them apart; give one of them as a clone()");
    if (const auto it = attributes_.find(impl); it != attributes_.end())
      throw CaptureError("capture: input " + in_quotes(input.name) + " is the module's own " +
                         in_quotes(graph_.attributes[it->second].name) + "; give a clone()");
    graph_.inputs.push_back({input.name, define(input.tensor, true)});
  }
}

void Recorder::add_attributes(const std::vector<NamedTensor>& tensors, graph::AttributeKind kind) {
  for (const NamedTensor& named : tensors) {
    if (!named.tensor.defined()) continue;
    const auto [it, inserted] = attributes_.emplace(named.tensor.unsafeGetTensorImpl(), graph_.attributes.size());
    if (!inserted) {
      graph_.attributes[it->second].aliases.push_back(named.name);
      continue;
    }
    graph::Attribute attribute;
    attribute.kind = kind;
    attribute.name = named.name;
    attribute.tensor = named.tensor;
    graph_.attributes.push_back(std::move(attribute));
    const int32_t storage = storage_number(named.tensor);
    registered_.push_back({named.tensor.requires_grad(), storage});
    if (storage >= 0) storage_varies_[storage] = 1;
  }
}

int32_t Recorder::storage_number(const at::Tensor& tensor) {
  const int32_t number = storages_.number_of(tensor);
  storage_varies_.resize(storages_.size());
  storage_unwritten_.resize(storages_.size());
  return number;
}

graph::ValueId Recorder::define(const at::Tensor& tensor, bool varies) {
  graph::Value value;
  value.dtype = tensor.scalar_type();
  value.sizes = tensor.sizes().vec();
  value.requires_grad = takes_gradient(tensor);
  value.storage = storage_number(tensor);
  if (value.storage >= 0 && varies) storage_varies_[value.storage] = 1;
  const graph::ValueId id = graph_.add_value(std::move(value));
  known_.push_back({grad_fn_of(tensor), tensor.requires_grad(), varies});
  values_.set(tensor, id);
  return id;
}

graph::ValueId Recorder::use(const at::Tensor& tensor, bool reads) {
  if (!tensor.defined()) return graph::kNoValue;
  const std::optional<graph::ValueId> value = values_.find(tensor);
  if (!value) return use_unknown(tensor);
  const graph::ValueId id = *value;
  // A recorded call's effect on gradients is noted when it returns. A custom autograd Function (its inner calls ran
  // without gradients, its backward is its own code) and requires_grad_() change gradients in between.
  if (tensor.requires_grad() != known_[id].requires_grad || grad_fn_of(tensor) != known_[id].grad_fn)
    refuse("the gradient of value %" + std::to_string(id) + " " + graph::describe(tensor) +
           " changed outside the dispatcher: a custom autograd Function or requires_grad_() in forward; its backward "
           "would be lost, write it with ATen calls");
  if (!is_unfilled(id)) return id;
  // at::tensor({1, 2}) makes an empty tensor and writes it through a pointer: its content is a constant of the model.
  if (reads) return add_constant(tensor);
  pending_unfilled_.emplace_back(id, tensor);
  return id;
}

bool Recorder::is_unfilled(graph::ValueId value) const {
  const int32_t storage = graph_.values[value].storage;
  return known_[value].unfilled && storage >= 0 && storage_unwritten_[storage];
}

graph::ValueId Recorder::use_unknown(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (const auto it = attributes_.find(impl); it != attributes_.end()) {
    graph::Attribute& attribute = graph_.attributes[it->second];
    if (tensor.requires_grad() != registered_[it->second].requires_grad)
      refuse("forward itself changed " + in_quotes(attribute.name) +
             " by requires_grad_(), which a replay would not do; do it before");
    return attribute.value = define(tensor, true);
  }
  if (const auto storage = storages_.find(tensor); storage && storage_varies_[*storage]) {
    std::string owner = "a value of the graph";
    for (const graph::Attribute& attribute : graph_.attributes)
      if (attribute.tensor.has_storage() && attribute.tensor.storage().is_alias_of(tensor.storage()))
        owner = in_quotes(attribute.name);
    refuse("a tensor " + graph::describe(tensor) + " shares its memory with " + owner +
           " unseen by the dispatcher (.data() or variable_data()); use detach()");
  }
  if (tensor.requires_grad())
    refuse("a tensor " + graph::describe(tensor) +
           " that requires a gradient is neither an input nor a registered parameter; register it in the module");
  return add_constant(tensor);
}

graph::ValueId Recorder::add_constant(const at::Tensor& tensor) {
  graph::Attribute constant;
  constant.kind = graph::AttributeKind::Constant;
  constant.name = "constant" + std::to_string(graph_.values.size());
  constant.tensor = tensor;
  constant.value = define(tensor, false);
  graph_.attributes.push_back(std::move(constant));
  return graph_.attributes.back().value;
}

graph::Argument Recorder::argument(const c10::IValue& value, const c10::Argument& parameter, bool reads) {
  graph::Argument argument;
  if (value.isTensor() && value.toTensor().defined()) {
    argument.kind = graph::Argument::Kind::Value;
    argument.values.push_back(use(value.toTensor(), reads));
  } else if (value.isTensorList()) {
    argument.kind = graph::Argument::Kind::TensorList;
    for (const c10::IValue& element : value.toListRef()) argument.values.push_back(use(element.toTensor(), reads));
  } else if (value.isList() && value.toList().elementType()->kind() == c10::TypeKind::OptionalType) {
    argument.kind = graph::Argument::Kind::OptionalTensorList;
    for (const c10::IValue& element : value.toListRef())
      argument.values.push_back(element.isNone() ? graph::kNoValue : use(element.toTensor(), reads));
  } else if (value.isGenerator()) {
    refuse("argument " + in_quotes(parameter.name()) +
           " is an explicit random generator, whose state a replay would not follow; "
           "use the default generator");
  } else {
    argument.constant = value.isList() ? value.deepcopy() : value;  // lists are references inside IValue
  }
  return argument;
}

void Recorder::before(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  pending_ = graph::Node{};
  pending_.op = op;
  pending_.grad_enabled = c10::GradMode::is_enabled();
  pending_.autocast = autocast_region(graph_.autocast);
  pending_unfilled_.clear();
  pending_varies_ = op.hasTag(at::Tag::nondeterministic_seeded);
  const c10::FunctionSchema& schema = op.schema();
  for (const c10::Argument& result : schema.returns())
    if (!is_tensor_like(*result.type()))
      refuse("it returns a " + result.type()->str() +
             " read from a tensor, which a replay could not change; "
             "keep the computation in tensors");
  const size_t first = stack.size() - schema.arguments().size();
  for (size_t i = 0; i < schema.arguments().size(); ++i)
    pending_.arguments.push_back(argument(stack[first + i], schema.arguments()[i], reads_content(op, stack, i)));
  graph::for_each_use(pending_, [&](graph::ValueId v) {
    const int32_t storage = graph_.values[v].storage;
    pending_varies_ = pending_varies_ || known_[v].varies || (storage >= 0 && storage_varies_[storage]);
  });
  graph::for_each_mutation(pending_, [&](graph::ValueId v) { before_write(graph_.values[v].storage); });
}

void Recorder::before_write(int32_t storage) {
  if (storage < 0) return;
  for (const graph::GraphInput& input : graph_.inputs)
    if (graph_.values[input.value].storage == storage)
      refuse("it changes input " + in_quotes(input.name) + " in place; clone() the input first");
  for (size_t i = 0; i < graph_.attributes.size(); ++i) {
    const graph::Attribute& attribute = graph_.attributes[i];
    if (attribute.kind == graph::AttributeKind::Constant && graph_.values[attribute.value].storage == storage)
      refuse("it changes in place a tensor " + graph::describe(attribute.tensor) +
             " that was made outside the dispatcher (torch::tensor(), or a tensor that is not registered), so every "
             "replay would continue from the last one; clone() it first, or register it as a buffer");
    if (attribute.kind != graph::AttributeKind::Parameter || registered_[i].storage != storage) continue;
    if (!written_parameters_.keeps(attribute.tensor)) written_parameters_.keep(attribute.tensor);
  }
}

void Recorder::after_write(int32_t storage) {
  if (storage < 0) return;
  // A varying value written into shared memory makes that memory vary, even if the write returns nothing.
  if (pending_varies_) storage_varies_[storage] = 1;
  const auto lies_there = [&](graph::ValueId value) { return graph_.values[value].storage == storage; };
  values_.for_each_alive(lies_there, [&](graph::ValueId value, const at::Tensor& tensor) {
    Known& known = known_[value];
    if (tensor.requires_grad() != known.requires_grad) {
      known.requires_grad = tensor.requires_grad();
      graph_.values[value].requires_grad = known.requires_grad;
    }
    known.grad_fn = grad_fn_of(tensor);
  });
}

void Recorder::read_what_was_copied(graph::Node& node, const torch::jit::Stack& stack) {
  const c10::FunctionSchema& schema = node.op->schema();
  const auto is_copied = [&](graph::ValueId value) {
    bool copied = false;
    for (size_t i = stack.size() - schema.returns().size(); i < stack.size(); ++i)
      for_each_tensor(stack[i], [&](const at::Tensor& result) {
        copied = copied || storages_.find(result) != graph_.values[value].storage;
      });
    return copied;
  };
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || alias->isWrite()) continue;
    for (graph::ValueId& value : node.arguments[i].values)
      for (const auto& [unfilled, tensor] : pending_unfilled_)
        if (value == unfilled && !tensor.is_meta() && is_copied(value)) value = add_constant(tensor);
  }
}

void Recorder::after(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  graph::Node node = std::move(pending_);
  read_what_was_copied(node, stack);
  const size_t count = op.schema().returns().size();
  const auto define_or_none = [&](const at::Tensor& tensor) {
    return tensor.defined() ? define(tensor, pending_varies_) : graph::kNoValue;
  };
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    graph::Result result;
    if (stack[i].isTensorList()) {
      result.is_list = true;
      for (const c10::IValue& element : stack[i].toListRef())
        result.values.push_back(define_or_none(element.toTensor()));
    } else {
      result.values.push_back(define_or_none(stack[i].toTensor()));
    }
    node.results.push_back(std::move(result));
  }
  const std::string& name = op.schema().name();
  const bool makes_unfilled = name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
  graph::for_each_definition(node, [&](graph::ValueId v) {
    const int32_t storage = graph_.values[v].storage;
    if (makes_unfilled && storage >= 0) storage_unwritten_[storage] = 1;
    known_[v].unfilled = makes_unfilled || std::ranges::any_of(pending_unfilled_, [&](const auto& shown) {
                           return graph_.values[shown.first].storage == storage;
                         });
  });
  pending_unfilled_.clear();
  const bool only_shows = op.hasTag(at::Tag::inplace_view);
  graph::for_each_mutation(node, [&](graph::ValueId v) {
    const int32_t storage = graph_.values[v].storage;
    if (storage >= 0 && !only_shows) storage_unwritten_[storage] = 0;
    after_write(storage);
  });
  if (op.schema().name() == "plumbline::pipe_split") node = graph::Node{};
  graph_.nodes.push_back(std::move(node));
}

void Recorder::enter_module(const std::string& name, const std::string& type) {
  open_modules_.push_back(graph_.module_calls.size());
  graph_.module_calls.push_back({name, type, static_cast<int32_t>(graph_.nodes.size()), -1});
}

void Recorder::leave_module() {
  graph_.module_calls[open_modules_.back()].end = static_cast<int32_t>(graph_.nodes.size());
  open_modules_.pop_back();
}

graph::Graph Recorder::finish(const std::vector<at::Tensor>& outputs) {
  pending_ = graph::Node{};
  for (const at::Tensor& output : outputs) graph_.outputs.push_back(use(output));
  return std::move(graph_);
}

void Recorder::refuse(const std::string& what) const {
  std::string where = "the outputs";
  if (pending_.op) where = c10::toString(pending_.op->operator_name());
  where += " (node " + std::to_string(graph_.nodes.size()) + ")";
  if (!open_modules_.empty()) {
    const graph::ModuleCall& module = graph_.module_calls[open_modules_.back()];
    where += " in module " + in_quotes(module.name) + " (" + module.type + ")";
  }
  throw CaptureError("capture: at " + where + ": " + what);
}

}  // namespace plumbline::capture

#include "conformance/proof/terms/recorder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>

#include "conformance/proof/terms/normalisations.h"
#include "runtime/io/sha256.h"

namespace plumbline::proof {
namespace {

bool is_number(const at::Tensor& tensor) {
  return tensor.dim() == 0 && tensor.unsafeGetTensorImpl()->is_wrapped_number() && !tensor.is_complex();
}

void append_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  if (value.isOptionalTensorList())
    for (const c10::IValue& item : value.toListRef()) tensors.push_back(item.isNone() ? at::Tensor() : item.toTensor());
}

bool holds_tensors(const c10::IValue& value) {
  return value.isTensor() || value.isTensorList() || value.isOptionalTensorList();
}

bool shares_memory(const at::Tensor& tensor, const std::vector<at::Tensor>& with) {
  return std::ranges::any_of(with, [&](const at::Tensor& other) {
    return other.defined() && other.has_storage() && tensor.has_storage() && other.is_alias_of(tensor);
  });
}

/// The state of the default generator: equal states draw equal numbers.
std::string random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return sha256({static_cast<const char*>(state.const_data_ptr()), state.nbytes()});
}

}  // namespace

std::string to_string(const Place& place) {
  std::string text;
  if (place.stage >= 0) text = "stage " + std::to_string(place.stage);
  if (place.microbatch >= 0) text += (text.empty() ? "" : ", ") + ("micro-batch " + std::to_string(place.microbatch));
  if (!place.action.empty()) text += " (" + place.action + ")";
  return text;
}

void Log::merge(const Log& other) {
  first.insert(other.first.begin(), other.first.end());
  for (const auto& [id, count] : other.times) times[id] += count;
  operators.insert(other.operators.begin(), other.operators.end());
  read_numbers.insert(other.read_numbers.begin(), other.read_numbers.end());
  executed += other.executed;
  unseen_writes += other.unseen_writes;
  zeros += other.zeros;
  misplaced.insert(misplaced.end(), other.misplaced.begin(), other.misplaced.end());
}

/// One call: what it does to terms.
struct Recorder::Described {
  Kind kind = Kind::Computes;
  std::string name;        // of a computing operator
  std::string attributes;  // its arguments, with % for tensors
  std::vector<TermId> operands;
  std::string number;               // if it fills
  std::optional<Value> copied;      // if it copies
  std::vector<at::Tensor> tensors;  // all tensor arguments
  std::vector<at::Tensor> written;  // those that are written
  std::map<size_t, TermId> before;  // of those whose new content, and no other result, depends on the old one
};

TermId Recorder::operand(const at::Tensor& tensor) {
  if (!tensor.defined()) return terms_.add({"none", "", {}});
  if (is_number(tensor)) return terms_.add({"number", number_text(tensor.item().toDouble()), {}});
  return term_of(tensor);
}

Recorder::Described Recorder::describe(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  const c10::FunctionSchema& schema = op.schema();
  Described call;
  call.kind = kind_of(schema.name());
  const bool random = op.hasTag(at::Tag::nondeterministic_seeded) && draws(schema, arguments);
  const bool quiet_statistics = schema.name() == "aten::native_batch_norm" && arguments[5].toBool();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    const bool written = (alias != nullptr && alias->isWrite()) || (quiet_statistics && (i == 3 || i == 4));
    if (!holds_tensors(arguments[i])) continue;
    append_tensors(arguments[i], call.tensors);
    if (!written) continue;
    const size_t known = call.written.size();
    append_tensors(arguments[i], call.written);
    if (is_unread(schema, arguments, i))
      for (size_t w = known; w < call.written.size(); ++w) call.before[w] = operand(call.written[w]);
  }
  if (call.kind == Kind::Reserves) return call;
  if (call.kind == Kind::Fills) {
    if (const std::optional<double> number = fill_number(schema, arguments))
      call.number = number_text(*number);
    else
      call.kind = Kind::Computes;
    if (call.kind == Kind::Fills) return call;
  }
  if (call.kind == Kind::Copies) {
    const at::Tensor& source = schema.name() == "aten::copy_" ? arguments[1].toTensor() : arguments[0].toTensor();
    if (is_number(source))
      call.number = number_text(source.item().toDouble());
    else
      call.copied = memory_.read(source);
    return call;
  }
  call.name = functional_name(schema);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& parameter = schema.arguments()[i];
    const bool out = parameter.kwarg_only() && parameter.alias_info() != nullptr && parameter.alias_info()->isWrite();
    // A random draw in place does not read what it overwrites.
    const bool overwritten = random && i == 0 && parameter.alias_info() != nullptr && parameter.alias_info()->isWrite();
    if (out || overwritten || is_unread(schema, arguments, i)) continue;
    call.attributes += " " + parameter.name() + "=";
    if (arguments[i].isTensor() && !arguments[i].toTensor().defined()) {
      call.attributes += "None";
      continue;
    }
    if (!holds_tensors(arguments[i])) {
      call.attributes += argument_text(arguments[i]);
      continue;
    }
    std::vector<at::Tensor> tensors;
    append_tensors(arguments[i], tensors);
    call.attributes += arguments[i].isTensor() ? "%" : "%" + std::to_string(tensors.size());
    for (const at::Tensor& tensor : tensors) call.operands.push_back(operand(tensor));
  }
  if (random) call.attributes += " random=" + random_state();
  if (call.name == "aten::add.Tensor") leave_out_zeros(arguments, call);
  return call;
}

/// x + 0 is x.
void Recorder::leave_out_zeros(const std::vector<c10::IValue>& arguments, Described& call) {
  const at::Tensor &a = arguments[0].toTensor(), &b = arguments[1].toTensor();
  const bool plain = arguments[2].isScalar() && arguments[2].toScalar().toDouble() == 1.0;
  if (!plain || a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return;
  const Value left = memory_.read(a), right = memory_.read(b);
  if (left.number != "0" && right.number != "0") return;
  call.kind = Kind::Copies;
  call.copied = left.number == "0" ? right : left;
  ++log_.zeros;
}

/// The value of the call's tensor number `index`, which it made or wrote.
Value Recorder::result(const Described& call, const at::Tensor& tensor, size_t index) {
  const Sizes sizes = tensor.sizes().vec();
  const c10::ScalarType dtype = tensor.scalar_type();
  if (!call.number.empty()) return filled(terms_, call.number, sizes, dtype);
  if (call.copied) {
    const Value& source = *call.copied;
    if (!source.number.empty()) return filled(terms_, source.number, sizes, dtype);
    if (source.dtype == dtype && source.sizes == sizes) return source;
    Value cast = source;
    if (source.dtype != dtype)
      cast = whole(terms_.add({"cast", type_text(dtype, source.sizes), {proof::term_of(terms_, source)}}), source.sizes,
                   dtype);
    if (cast.sizes == sizes) return cast;
    // copy_ broadcasts.
    return whole(terms_.add({"broadcast", type_text(dtype, sizes), {proof::term_of(terms_, cast)}}), sizes, dtype);
  }
  const std::string which = index == 0 ? "" : "result " + std::to_string(index) + " ";
  std::vector<TermId> operands = call.operands;
  if (const auto before = call.before.find(index); before != call.before.end()) operands.push_back(before->second);
  const TermId id = terms_.add({call.name, which + type_text(dtype, sizes) + call.attributes, std::move(operands)});
  log_.first.try_emplace(id, place_);
  if (!place_.action.empty()) ++log_.times[id];
  return whole(id, sizes, dtype);
}

void Recorder::define_results(const Described& call, const std::vector<at::Tensor>& results) {
  std::vector<at::Tensor> seen;
  size_t index = 0;
  for (const at::Tensor& tensor : call.written)
    if (tensor.defined()) memory_.write(tensor, result(call, tensor, index++));
  for (const at::Tensor& tensor : results) {
    if (!tensor.defined()) {
      ++index;
      continue;
    }
    if (shares_memory(tensor, call.written)) continue;  // the written operand itself
    if (shares_memory(tensor, call.tensors)) continue;  // a view
    if (call.kind == Kind::Reserves)
      memory_.define_unset(tensor);
    else if (shares_memory(tensor, seen))
      memory_.write(tensor, result(call, tensor, index++));
    else
      memory_.define(tensor, result(call, tensor, index++));
    seen.push_back(tensor);
  }
}

void Recorder::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const Described call =
      describe(op, {stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size()), stack->end()});
  op.callBoxed(stack);
  ++log_.executed;
  std::vector<at::Tensor> results;
  bool all_tensors = true;
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    append_tensors((*stack)[i], results);
    all_tensors = all_tensors && holds_tensors((*stack)[i]);
  }
  if (!all_tensors) log_.read_numbers.insert(schema.name());
  if (call.kind == Kind::Computes && !results.empty()) log_.operators.insert(schema.name());
  define_results(call, results);
}

void Recorder::name_leaf(const at::Tensor& tensor, const std::string& kind, const std::string& name) {
  if (!tensor.defined() || tensor.numel() == 0) return;
  const at::Tensor dense = tensor.detach().contiguous();
  const Sizes sizes = tensor.sizes().vec();
  memory_.define(tensor,
                 whole(terms_.add({kind,
                                   name + " " + type_text(tensor.scalar_type(), sizes) + " " +
                                       sha256({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()}),
                                   {}}),
                       sizes, tensor.scalar_type()));
}

void Recorder::enter(int stage, int microbatch, std::string action) {
  place_.stage = stage;
  place_.microbatch = microbatch;
  place_.action = std::move(action);
}

Log Recorder::take_log() {
  log_.unseen_writes = memory_.unseen_writes();
  return std::exchange(log_, {});
}

}  // namespace plumbline::proof

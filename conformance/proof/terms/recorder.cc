#include "conformance/proof/terms/recorder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "conformance/proof/shapes/hollow_memory.h"
#include "conformance/proof/shapes/shape_run.h"
#include "conformance/proof/terms/call_key.h"
#include "conformance/proof/terms/normalisations.h"
#include "runtime/io/sha256.h"
#include "runtime/text/significant.h"

namespace plumbline::proof {
namespace {

bool is_number(const at::Tensor& tensor) {
  return tensor.dim() == 0 && tensor.unsafeGetTensorImpl()->is_wrapped_number() && !tensor.is_complex();
}

/// Without an allocation up to four.
using Tensors = c10::SmallVector<at::Tensor, 4>;

void append_tensors(const c10::IValue& value, Tensors& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  if (value.isOptionalTensorList())
    for (const c10::IValue& item : value.toListRef()) tensors.push_back(item.isNone() ? at::Tensor() : item.toTensor());
}

bool holds_tensors(const c10::IValue& value) {
  return value.isTensor() || value.isTensorList() || value.isOptionalTensorList();
}

bool shares_memory(const at::Tensor& tensor, c10::ArrayRef<at::Tensor> with) {
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

/// Equal contents have equal texts. Hollow memory has none, so its leaves are told apart by name alone.
std::string content_text(const at::Tensor& tensor) {
  if (is_hollow(tensor.storage().data())) return "hollow";
  const at::Tensor dense = tensor.detach().contiguous();
  return sha256({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()});
}

}  // namespace

void Log::merge(const Log& other) {
  operators.insert(other.operators.begin(), other.operators.end());
  read_numbers.insert(other.read_numbers.begin(), other.read_numbers.end());
  executed += other.executed;
  unseen_writes += other.unseen_writes;
  zeros += other.zeros;
  misplaced.insert(misplaced.end(), other.misplaced.begin(), other.misplaced.end());
}

/// The effect of a call on terms, for any terms of its operands.
struct Recorder::Form {
  struct Argument {
    bool read = false;     // its tensors are operands
    bool written = false;  // its tensors are written
    bool kept = false;     // written, and the new content, and no other result, depends on the old one
    bool has_tensors = false;
  };
  struct Result {
    Sizes sizes;
    c10::ScalarType dtype;
    Terms::Head head;
  };
  Kind kind = Kind::Computes;
  std::string name;        // of a computing operator
  std::string attributes;  // its arguments, with % for tensors
  std::string number;      // if every element of the result is one
  size_t source = 0;       // if it copies: the argument that is copied
  bool random = false;     // it draws random numbers
  bool adds = false;       // tensors of the same sizes and dtype, and does no more
  std::vector<Argument> arguments;
  mutable bool seen = false;                            // the log has its name
  mutable const ShapeRun::Effect* on_shapes = nullptr;  // null: not known yet
  mutable std::vector<std::optional<Result>> results;
};

/// One call.
struct Recorder::Described {
  const Form& form;
  Kind kind;
  c10::SmallVector<TermId, 4> operands = {};
  std::string random = {};               // " random=...", or nothing
  std::optional<Value> copied = {};      // if it copies
  Tensors tensors = {};                  // all tensor arguments
  Tensors written = {};                  // those that are written
  std::map<size_t, TermId> before = {};  // of written ones that are kept
};

Recorder::Recorder(Terms& terms, Occurrences& occurrences, int rank, ShapeRun* shapes)
    : terms_(terms), occurrences_(occurrences), shapes_(shapes), memory_(terms) {
  place_.rank = rank;
}

Recorder::~Recorder() = default;

TermId Recorder::operand(const at::Tensor& tensor) {
  if (!tensor.defined()) return terms_.add({"none", "", {}});
  if (is_number(tensor)) return terms_.add({"number", significant(tensor.item().toDouble(), 17), {}});
  return term_of(tensor);
}

Recorder::Form Recorder::form_of(const c10::OperatorHandle& op, Arguments arguments) {
  const c10::FunctionSchema& schema = op.schema();
  Form form;
  form.kind = kind_of(schema.name());
  form.random = op.hasTag(at::Tag::nondeterministic_seeded) && draws(schema, arguments);
  const bool quiet_statistics = schema.name() == "aten::native_batch_norm" && arguments[5].toBool();
  for (size_t i = 0; i < arguments.size(); ++i) {
    Form::Argument& argument = form.arguments.emplace_back();
    argument.has_tensors = holds_tensors(arguments[i]);
    argument.written = argument.has_tensors &&
                       (capture::is_written(schema.arguments()[i]) || (quiet_statistics && (i == 3 || i == 4)));
    argument.kept = argument.written && is_unread(schema, arguments, i);
  }
  if (form.kind == Kind::Reserves) return form;
  if (form.kind == Kind::Fills) {
    if (const std::optional<double> number = fill_number(schema, arguments)) {
      form.number = significant(*number, 17);
      return form;
    }
    form.kind = Kind::Computes;
  }
  if (form.kind == Kind::Copies) {
    form.source = schema.name() == "aten::copy_" ? 1 : 0;
    const at::Tensor& source = arguments[form.source].toTensor();
    if (is_number(source)) form.number = significant(source.item().toDouble(), 17);
    return form;
  }
  form.name = functional_name(schema);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& parameter = schema.arguments()[i];
    // A random draw in place does not read what it overwrites, nor does an operator with out=.
    const bool overwrites = parameter.kwarg_only() || (form.random && i == 0);
    if ((overwrites && capture::is_written(parameter)) || is_unread(schema, arguments, i)) continue;
    form.attributes += " " + parameter.name() + "=";
    if (arguments[i].isTensor() && !arguments[i].toTensor().defined()) {
      form.attributes += "None";
      continue;
    }
    if (!holds_tensors(arguments[i])) {
      form.attributes += argument_text(arguments[i]);
      continue;
    }
    Tensors tensors;
    append_tensors(arguments[i], tensors);
    form.attributes += arguments[i].isTensor() ? "%" : "%" + std::to_string(tensors.size());
    form.arguments[i].read = true;
  }
  if (form.name == "aten::add.Tensor") {
    const at::Tensor &a = arguments[0].toTensor(), &b = arguments[1].toTensor();
    form.adds = arguments[2].isScalar() && arguments[2].toScalar().toDouble() == 1.0 && a.sizes() == b.sizes() &&
                a.scalar_type() == b.scalar_type();
  }
  return form;
}

const Recorder::Form& Recorder::known_form(const c10::OperatorHandle& op, Arguments arguments) {
  write_call_key(key_, op, arguments);
  auto known = forms_.find(key_);
  if (known == forms_.end()) known = forms_.emplace(key_, std::make_unique<Form>(form_of(op, arguments))).first;
  return *known->second;
}

Recorder::Described Recorder::describe(const Form& form, Arguments arguments) {
  Described call{.form = form, .kind = form.kind};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Form::Argument& argument = form.arguments[i];
    if (!argument.has_tensors) continue;
    append_tensors(arguments[i], call.tensors);
    if (!argument.written) continue;
    const size_t known = call.written.size();
    append_tensors(arguments[i], call.written);
    if (argument.kept)
      for (size_t w = known; w < call.written.size(); ++w) call.before[w] = operand(call.written[w]);
  }
  if (call.kind == Kind::Copies && form.number.empty()) call.copied = memory_.read(arguments[form.source].toTensor());
  if (call.kind != Kind::Computes) return call;
  if (form.adds && leave_out_zeros(arguments, call)) return call;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!form.arguments[i].read) continue;
    Tensors tensors;
    append_tensors(arguments[i], tensors);
    for (const at::Tensor& tensor : tensors) call.operands.push_back(operand(tensor));
  }
  if (form.random) call.random = " random=" + random_state();
  return call;
}

/// x + 0 is x.
bool Recorder::leave_out_zeros(Arguments arguments, Described& call) {
  const at::Tensor &a = arguments[0].toTensor(), &b = arguments[1].toTensor();
  const bool left = memory_.number(a) == "0", right = memory_.number(b) == "0";
  if (!left && !right) return false;
  call.kind = Kind::Copies;
  call.copied = memory_.read(left ? b : a);
  ++log_.zeros;
  return true;
}

/// Of the call's tensor number `index`, which it made or wrote.
Terms::Head Recorder::head(const Described& call, const at::Tensor& tensor, size_t index) {
  std::vector<std::optional<Form::Result>>& known = call.form.results;
  if (known.size() <= index) known.resize(index + 1);
  const c10::ScalarType dtype = tensor.scalar_type();
  if (call.random.empty() && known[index] && tensor.sizes().equals(known[index]->sizes) && dtype == known[index]->dtype)
    return known[index]->head;
  Sizes sizes = Sizes(tensor.sizes());
  const std::string which = index == 0 ? "" : "result " + std::to_string(index) + " ";
  const Terms::Head head =
      terms_.head(call.form.name, which + type_text(dtype, sizes) + call.form.attributes + call.random);
  if (call.random.empty()) known[index] = {std::move(sizes), dtype, head};
  return head;
}

/// The value of the call's tensor number `index`, which it made or wrote.
Value Recorder::result(const Described& call, const at::Tensor& tensor, size_t index) {
  const Sizes sizes = Sizes(tensor.sizes());
  const c10::ScalarType dtype = tensor.scalar_type();
  if (!call.form.number.empty()) return filled(terms_, call.form.number, sizes, dtype);
  if (call.copied) {
    const Value& source = *call.copied;
    if (!source.number.empty()) return filled(terms_, source.number, sizes, dtype);
    if (source.dtype == dtype && source.sizes == sizes) return source;
    Value cast = source;
    if (source.dtype != dtype)
      cast =
          whole(terms_.add({"cast", type_text(dtype, source.sizes), {memory_.term_of(source)}}), source.sizes, dtype);
    if (cast.sizes == sizes) return cast;
    // copy_ broadcasts.
    return whole(terms_.add({"broadcast", type_text(dtype, sizes), {memory_.term_of(cast)}}), sizes, dtype);
  }
  Terms::Added added;
  if (const auto before = call.before.find(index); before != call.before.end()) {
    std::vector<TermId> operands(call.operands.begin(), call.operands.end());
    operands.push_back(before->second);
    added = terms_.add_numbered(head(call, tensor, index), operands);
  } else {
    added = terms_.add_numbered(head(call, tensor, index), call.operands);
  }
  occurrences_.note(added.number, place_);
  if (computed_ != nullptr) computed_->push_back({added.id, place_.action});
  return whole(added.id, sizes, dtype);
}

void Recorder::define_results(const Described& call, c10::ArrayRef<at::Tensor> results) {
  Tensors seen;
  size_t index = 0;
  for (const at::Tensor& tensor : call.written)
    if (tensor.defined()) memory_.write(tensor, result(call, tensor, index++));
  for (const at::Tensor& tensor : results) {
    if (!tensor.defined()) {
      ++index;
      continue;
    }
    if (shares_memory(tensor, call.tensors)) continue;  // a written operand itself, or a view
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
  const Arguments arguments = Arguments(*stack).last(schema.arguments().size());  // until the call takes them
  const Form& form = known_form(op, arguments);
  const Described call = describe(form, arguments);
  if (shapes_ == nullptr || !is_hollow_call(arguments)) {
    op.callBoxed(stack);
  } else {
    if (form.on_shapes == nullptr) form.on_shapes = &shapes_->effect(key_, op, arguments);
    ShapeRun::execute(*form.on_shapes, op, stack);
  }
  ++log_.executed;
  Tensors results;
  bool all_tensors = true;
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    append_tensors((*stack)[i], results);
    all_tensors = all_tensors && holds_tensors((*stack)[i]);
  }
  if (!all_tensors) log_.read_numbers.insert(schema.name());
  if (call.kind == Kind::Computes && !results.empty() && !std::exchange(call.form.seen, true))
    log_.operators.insert(schema.name());
  define_results(call, results);
}

void Recorder::name_leaf(const at::Tensor& tensor, const std::string& kind, const std::string& name) {
  if (!tensor.defined() || tensor.numel() == 0) return;
  const Sizes sizes = Sizes(tensor.sizes());
  const std::string text = name + " " + type_text(tensor.scalar_type(), sizes) + " " + content_text(tensor);
  memory_.define(tensor, whole(terms_.add({kind, text, {}}), sizes, tensor.scalar_type()));
}

void Recorder::enter(int stage, int microbatch, char action) {
  place_.stage = stage;
  place_.microbatch = microbatch;
  place_.action = action;
}

Log Recorder::take_log() {
  log_.unseen_writes = memory_.unseen_writes();
  return std::exchange(log_, {});
}

}  // namespace plumbline::proof

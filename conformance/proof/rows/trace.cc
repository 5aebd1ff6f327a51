#include "conformance/proof/rows/trace.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/enum_tag.h>
#include <torch/csrc/autograd/function.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <utility>

#include "reference/oracle/precision.h"
#include "runtime/io/sha256.h"

namespace plumbline::proof {
namespace {

/// The tensors of an argument or result of this type; undefined ones too.
std::optional<std::vector<at::Tensor>> tensors_of(const c10::IValue& value, const c10::Argument& declared) {
  if (value.isNone() && *declared.type() == *c10::OptionalType::ofTensor()) return std::vector<at::Tensor>(1);
  if (value.isTensor()) return std::vector<at::Tensor>{value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  if (!value.isOptionalTensorList()) return std::nullopt;
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& item : value.toListRef()) tensors.push_back(item.isNone() ? at::Tensor() : item.toTensor());
  return tensors;
}

}  // namespace

Tracer::Tracer(const torch::nn::Module& root) {
  for (const auto& item : root.named_modules()) names_.emplace(item.value().get(), item.key());
}

TracedTensor Tracer::traced(const at::Tensor& tensor, bool is_read) {
  if (!tensor.defined()) return {};
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  const auto [known, is_new] = numbers_.try_emplace(storage, static_cast<int>(kept_.size()));
  if (is_new) {
    kept_.push_back(tensor.storage());
    has_value_.push_back(false);
  }
  TracedTensor traced{.storage = known->second,
                      .layout = {tensor.storage_offset(), Sizes(tensor.sizes()), Sizes(tensor.strides())},
                      .storage_elements = static_cast<int64_t>(storage->nbytes() / tensor.element_size()),
                      .dtype = tensor.scalar_type()};
  if (tensor.numel() == 1 && !tensor.is_complex()) traced.number = tensor.item().toDouble();
  traced.literal = tensor.dim() == 0 && tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (is_read && !has_value_[traced.storage]) {
    const at::Tensor dense = tensor.contiguous();
    traced.content = sha256({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()});
  }
  return traced;
}

void Tracer::module_changes() { from_[at::sequence_number::peek()] = inside_.empty() ? "" : inside_.back(); }

void Tracer::enter(const torch::nn::Module& module) {
  const auto name = names_.find(&module);
  inside_.push_back(name == names_.end() ? "" : name->second);
  module_changes();
}

void Tracer::leave(const torch::nn::Module&) {
  inside_.pop_back();
  module_changes();
}

std::string Tracer::module_now() const {
  const auto node = torch::autograd::get_current_node();
  if (!node) return inside_.empty() ? "" : inside_.back();
  const auto after = from_.upper_bound(node->sequence_nr());
  return after == from_.begin() ? "" : std::prev(after)->second;
}

void Tracer::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::vector<c10::IValue> given(stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size()),
                                       stack->end());
  TracedCall call{.schema = &schema, .op = functional_name(schema)};
  std::vector<at::Tensor> written;
  const Kind kind = kind_of(schema.name());
  call.kind = kind;
  if (kind == Kind::Fills) call.fill = fill_number(schema, given);
  for (size_t i = 0; i < given.size(); ++i) {
    const std::optional<std::vector<at::Tensor>> tensors = tensors_of(given[i], schema.arguments()[i]);
    call.arguments.push_back(tensors ? c10::IValue() : given[i]);
    call.tensors.emplace_back();
    if (!tensors) continue;
    const bool is_written = capture::is_written(schema.arguments()[i]);
    // What is only overwritten is not read.
    const bool is_read = kind != Kind::Reserves && !(is_written && (kind == Kind::Fills || kind == Kind::Copies));
    for (const at::Tensor& tensor : *tensors) {
      call.tensors.back().push_back(traced(tensor, is_read));
      if (is_written && tensor.defined()) written.push_back(tensor);
    }
  }
  call.draws = op.hasTag(at::Tag::nondeterministic_seeded) && proof::draws(schema, given);
  call.module = module_now();
  call.backward = static_cast<bool>(torch::autograd::get_current_node());
  op.callBoxed(stack);
  for (const at::Tensor& tensor : written) has_value_[traced(tensor, false).storage] = true;
  const size_t first = stack->size() - schema.returns().size();
  for (size_t i = first; i < stack->size(); ++i) {
    const std::optional<std::vector<at::Tensor>> tensors = tensors_of((*stack)[i], schema.returns()[i - first]);
    if (!tensors) call.gives_numbers = true;
    for (const at::Tensor& tensor : tensors.value_or(std::vector<at::Tensor>())) {
      const size_t known = kept_.size();
      call.results.push_back(traced(tensor, false));
      if (kept_.size() > known && kind != Kind::Reserves) has_value_.back() = true;
    }
  }
  trace_.events.emplace_back(std::move(call));
}

void Tracer::mark(TracedMark::Kind kind, const std::string& name, const at::Tensor& tensor, int dim, int first_row) {
  using enum TracedMark::Kind;
  const reference::Unobserved unobserved;
  const bool is_leaf = kind == Replicated || kind == Rows || kind == Seed;
  TracedMark mark{kind, name, traced(tensor, !is_leaf), dim, first_row};
  if (is_leaf && tensor.defined()) has_value_[mark.tensor.storage] = true;
  trace_.events.emplace_back(std::move(mark));
}

}  // namespace plumbline::proof

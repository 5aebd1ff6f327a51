#include "conformance/proof/terms/call_key.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <sstream>

#include "conformance/proof/terms/normalisations.h"

namespace plumbline::proof {
namespace {

void append(std::string& key, int64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }

void append(std::string& key, at::IntArrayRef numbers) {
  append(key, static_cast<int64_t>(numbers.size()));
  key.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t));
}

void append(std::string& key, const std::string& text) {
  append(key, static_cast<int64_t>(text.size()));
  key += text;
}

void append(std::string& key, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    key += 'u';
    return;
  }
  const bool number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  key += number ? 'n' : 't';
  key += static_cast<char>(tensor.scalar_type());
  key += static_cast<char>(tensor.device().type());
  append(key, tensor.sizes());
  append(key, tensor.strides());
  if (number) append(key, argument_text(tensor.item()));
}

void append(std::string& key, const c10::IValue& value) {
  if (value.isTensor()) return append(key, value.toTensor());
  if (value.isNone()) {
    key += 'N';
  } else if (value.isInt()) {
    key += 'i';
    append(key, value.toInt());
  } else if (value.isBool()) {
    key += value.toBool() ? 'T' : 'F';
  } else if (value.isDouble()) {
    key += 'd';
    const double number = value.toDouble();
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  } else if (value.isList()) {
    key += 'l';
    append(key, static_cast<int64_t>(value.toListRef().size()));
    for (const c10::IValue& item : value.toListRef()) append(key, item);
  } else {
    std::ostringstream text;
    text << value.tagKind() << " " << value;
    key += 'o';
    append(key, text.str());
  }
}

}  // namespace

void write_call_key(std::string& key, const c10::OperatorHandle& op, std::span<const c10::IValue> arguments) {
  key.clear();
  append(key, static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(&op.schema())));
  for (const c10::IValue& argument : arguments) append(key, argument);
}

}  // namespace plumbline::proof

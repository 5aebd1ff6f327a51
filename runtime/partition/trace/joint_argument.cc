#include "runtime/partition/trace/joint_argument.h"

#include <ATen/core/jit_type.h>

#include "runtime/error.h"
#include "runtime/graph/schema_types.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {
namespace {

using Kind = JointArgument::Kind;

/// A dtype, layout or memory format is an integer to the dispatcher.
JointArgument integer(int64_t value, const c10::Type& type) {
  JointArgument argument;
  switch (type.kind()) {
    case c10::TypeKind::ScalarTypeType:
      argument.kind = Kind::Dtype;
      argument.dtype = types::from_aten(static_cast<at::ScalarType>(value));
      break;
    case c10::TypeKind::LayoutType:
      argument.kind = Kind::Layout;
      argument.layout = types::from_aten(static_cast<c10::Layout>(value));
      break;
    case c10::TypeKind::MemoryFormatType:
      argument.kind = Kind::MemoryFormat;
      argument.memory_format = types::from_aten(static_cast<c10::MemoryFormat>(value));
      break;
    default:
      argument.kind = Kind::Integer;
      argument.integer = value;
  }
  return argument;
}

std::vector<Extent> extents(at::IntArrayRef numbers) {
  std::vector<Extent> result;
  for (const int64_t number : numbers) result.push_back({number, {}});
  return result;
}

}  // namespace

JointArgument joint_argument(const c10::IValue& value, const c10::Type& optional_type,
                             const std::function<JointArgument(const at::Tensor&)>& tensor) {
  const c10::Type& type = graph::without_optional(optional_type);
  JointArgument argument;
  if (value.isNone()) return argument;
  if (value.isTensor()) return value.toTensor().defined() ? tensor(value.toTensor()) : argument;
  if (value.isInt()) return integer(value.toInt(), type);
  if (value.isSymInt()) {
    if (const auto number = value.toSymInt().maybe_as_int()) return integer(*number, type);
  } else if (value.isBool()) {
    argument.kind = Kind::Bool;
    argument.integer = value.toBool();
    return argument;
  } else if (value.isDouble()) {
    argument.kind = Kind::Float;
    argument.real = value.toDouble();
    return argument;
  } else if (value.isComplexDouble()) {
    argument.kind = Kind::Complex;
    argument.real = value.toComplexDouble().real();
    argument.imaginary = value.toComplexDouble().imag();
    return argument;
  } else if (value.isString()) {
    argument.kind = Kind::String;
    argument.text = value.toStringRef();
    return argument;
  } else if (value.isDevice()) {
    argument.kind = Kind::Device;
    argument.device = types::from_aten(value.toDevice());
    return argument;
  } else if (value.isList()) {
    argument.kind = Kind::List;
    const c10::Type& element = type.kind() == c10::TypeKind::ListType ? *type.castRaw<c10::ListType>()->getElementType()
                                                                      : *c10::AnyType::get();
    for (const c10::IValue& item : value.toListRef()) argument.items.push_back(joint_argument(item, element, tensor));
    return argument;
  }
  argument.kind = Kind::Other;
  argument.text = value.tagKind();
  return argument;
}

bool is_default(const JointArgument& argument, const c10::Argument& parameter) {
  if (!parameter.default_value()) return false;
  const auto no_tensor = [](const at::Tensor&) { return JointArgument{.kind = Kind::Other}; };
  return equal(argument, joint_argument(*parameter.default_value(), *parameter.real_type(), no_tensor));
}

JointResult joint_result(const at::Tensor& tensor) {
  JointResult result;
  result.kind = JointResult::Kind::Tensor;
  result.dtype = types::from_aten(tensor.scalar_type());
  result.shape = extents(tensor.sizes());
  result.strides = extents(tensor.strides());
  result.offset.value = tensor.storage_offset();
  result.bytes = tensor.numel() * static_cast<int64_t>(tensor.element_size());
  result.device = types::from_aten(tensor.device());
  return result;
}

}  // namespace plumbline::partition

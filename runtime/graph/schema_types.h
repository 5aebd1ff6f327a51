// The types that an operator's schema declares for its arguments, and the constants that fit them.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <optional>

namespace plumbline::graph {

/// The element type of an optional type; any other type unchanged.
inline const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType ? *type.castRaw<c10::OptionalType>()->getElementType() : type;
}

/// The element type of a list or optional list; null for any other type.
inline const c10::TypePtr* element_type(const c10::Type& type) {
  const c10::Type& list = without_optional(type);
  return list.kind() == c10::TypeKind::ListType ? &list.castRaw<c10::ListType>()->getElementType() : nullptr;
}

/// Whether the type is a tensor or an optional tensor.
inline bool takes_tensor(const c10::Type& type) { return without_optional(type).kind() == c10::TypeKind::TensorType; }

/// `value` as a constant of `type`, with the conversions of PyTorch's own matching of arguments: between bool and int,
/// of either to a float, of a number to a complex one, of a text to a device, of None for a tensor to an undefined
/// tensor, and of one number to a list of it if the schema fixes the `length` (`int[2]`: Argument::N()). A number fits
/// a tensor unchanged (boxed_constant() wraps it). nullopt if the value does not fit.
std::optional<c10::IValue> fitted(const c10::IValue& value, const c10::Type& type,
                                  std::optional<int> length = std::nullopt);

}  // namespace plumbline::graph

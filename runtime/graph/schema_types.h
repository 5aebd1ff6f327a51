// The types that an operator's schema declares for its arguments.
#pragma once

#include <ATen/core/jit_type.h>

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

}  // namespace plumbline::graph

// The parameters that an operator's schema declares: their types, the constants that fit them, and the matching of a
// call's arguments to them.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <optional>
#include <string>
#include <vector>

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

inline bool takes_tensor(const c10::Type& type) { return without_optional(type).kind() == c10::TypeKind::TensorType; }

/// `value` as a constant of `type`, with the conversions of PyTorch's own matching of arguments: between bool and int,
/// of either to a float, of a number to a complex one, of a text to a device, of None for a tensor to an undefined
/// tensor, and of one number to a list that repeats it `length` times (the schema fixes the length, as in `int[2]`:
/// Argument::N()). Without a `length`, PyTorch refuses one number, and this makes a list of one. A number fits a tensor
/// unchanged (boxed_constant() wraps it). nullopt if the value does not fit.
std::optional<c10::IValue> fitted(const c10::IValue& value, const c10::Type& type,
                                  std::optional<int> length = std::nullopt);

/// Returns for each parameter of `schema` the index of the given argument that it takes; nullopt for the parameter's
/// default. `names` holds the name of each given argument; an argument without a name (nullopt) goes to the parameter
/// after that of the preceding argument. Throws Error, without naming the call, if an argument has no parameter or the
/// parameter of another one, or if a parameter has neither an argument nor a default. With `optional_is_default`, None
/// is the default of an optional parameter that declares none.
std::vector<std::optional<size_t>> match_formals(const c10::FunctionSchema& schema,
                                                 const std::vector<std::optional<std::string>>& names,
                                                 bool optional_is_default);

}  // namespace plumbline::graph

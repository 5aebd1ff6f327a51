#include "runtime/graph/schema_types.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/text/in_quotes.h"

namespace plumbline::graph {
namespace {

using Fitted = std::optional<c10::IValue>;

Fitted only_if(bool fits, const c10::IValue& value) { return fits ? Fitted(value) : std::nullopt; }

Fitted device(const std::string& name) {
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

Fitted list(const c10::IValue& value, const c10::TypePtr& declared, std::optional<int> length) {
  const bool symbolic = declared->kind() == c10::TypeKind::SymIntType;
  const c10::TypePtr element = symbolic ? c10::TypePtr(c10::IntType::get()) : declared;
  c10::impl::GenericList items(element);
  const auto add = [&](const c10::IValue& item) {
    const Fitted fits = fitted(item, *element);
    if (fits) items.push_back(*fits);
    return fits.has_value();
  };
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef())
      if (!add(item)) return std::nullopt;
    return items;
  }
  for (int i = 0; i < length.value_or(1); ++i)
    if (!add(value)) return std::nullopt;
  return items;
}

}  // namespace

Fitted fitted(const c10::IValue& value, const c10::Type& type, std::optional<int> length) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      if (value.isNone()) return value;
      return fitted(value, without_optional(type), length);
    case c10::TypeKind::ListType:
      return list(value, *element_type(type), length);
    case c10::TypeKind::TensorType:
      if (value.isNone()) return at::Tensor();
      return only_if(value.isTensor() || value.isScalar(), value);
    case c10::TypeKind::NumberType:
      return only_if(value.isScalar(), value);
    case c10::TypeKind::ComplexType:
      if (!value.isScalar()) return std::nullopt;
      return value.toScalar().toComplexDouble();
    case c10::TypeKind::FloatType:
      if (value.isInt()) return static_cast<double>(value.toInt());
      if (value.isBool()) return value.toBool() ? 1.0 : 0.0;
      return only_if(value.isDouble(), value);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      if (value.isBool()) return int64_t{value.toBool()};
      return only_if(value.isInt(), value);
    case c10::TypeKind::BoolType:
      if (value.isInt()) return value.toInt() != 0;
      return only_if(value.isBool(), value);
    case c10::TypeKind::DeviceObjType:
      if (value.isString()) return device(value.toStringRef());
      return only_if(value.isDevice(), value);
    default:
      return only_if(value.type()->isSubtypeOf(type), value);
  }
}

std::vector<std::optional<size_t>> match_formals(const c10::FunctionSchema& schema,
                                                 const std::vector<std::optional<std::string>>& names,
                                                 bool optional_is_default) {
  const std::vector<c10::Argument>& formals = schema.arguments();
  std::vector<std::optional<size_t>> given(formals.size());
  size_t place = 0;
  for (size_t i = 0; i < names.size(); ++i, ++place) {
    if (names[i]) {
      const std::optional<int> named = schema.argumentIndexWithName(*names[i]);
      if (!named) throw Error("the operator has no argument " + in_quotes(*names[i]));
      place = *named;
    }
    if (place >= formals.size()) throw Error(std::to_string(names.size()) + " arguments are too many for it");
    if (given[place]) throw Error("argument " + in_quotes(formals[place].name()) + " is given twice");
    given[place] = i;
  }
  for (size_t i = 0; i < formals.size(); ++i) {
    const bool has_default = formals[i].default_value().has_value() ||
                             (optional_is_default && formals[i].type()->kind() == c10::TypeKind::OptionalType);
    if (!given[i] && !has_default) throw Error("argument " + in_quotes(formals[i].name()) + " is missing");
  }
  return given;
}

}  // namespace plumbline::graph

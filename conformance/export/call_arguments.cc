#include "conformance/export/call_arguments.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>

#include "runtime/error.h"
#include "runtime/graph/dtype_names.h"
#include "runtime/io/json_place.h"

namespace plumbline::conformance {
namespace {

/// Arguments that change no result.
constexpr std::array<std::string_view, 9> kAboutMemory = {
    "memory_format", "layout", "device", "pin_memory", "non_blocking", "copy", "cudnn_enabled", "sparse", "generator"};

/// Of an argument that has no form in a program's JSON.
struct NoForm {};

Json constant_json(const c10::IValue& constant, const c10::Type& type) {
  if (constant.isNone()) return nullptr;
  if (constant.isTensor() && !constant.toTensor().defined()) return nullptr;
  if (constant.isBool()) return constant.toBool();
  if (constant.isInt()) {
    const c10::Type* inner = &type;
    if (inner->kind() == c10::TypeKind::OptionalType)
      inner = inner->castRaw<c10::OptionalType>()->getElementType().get();
    if (inner->kind() == c10::TypeKind::ScalarTypeType)
      return dtype_json(static_cast<at::ScalarType>(constant.toInt()));
    return constant.toInt();
  }
  if (constant.isDouble()) return real_json(constant.toDouble());
  if (constant.isString()) return constant.toStringRef();
  if (constant.isList()) {
    Json items = Json::array();
    for (const c10::IValue& item : constant.toListRef()) items.push_back(constant_json(item, type));
    return items;
  }
  throw NoForm();
}

Json argument_json(const graph::Argument& argument, const c10::Type& type,
                   const std::function<int(graph::ValueId)>& number_of) {
  switch (argument.kind) {
    case graph::Argument::Kind::Constant:
      return constant_json(argument.constant, type);
    case graph::Argument::Kind::Value:
      return reference(number_of(argument.values.at(0)));
    case graph::Argument::Kind::TensorList:
    case graph::Argument::Kind::OptionalTensorList: {
      Json items = Json::array();
      for (graph::ValueId v : argument.values)
        items.push_back(v == graph::kNoValue ? Json(nullptr) : reference(number_of(v)));
      return items;
    }
    case graph::Argument::Kind::NumberList:
      throw NoForm();
  }
  return nullptr;
}

bool has_no_effect(const graph::Argument& argument, const c10::Argument& parameter) {
  if (argument.kind != graph::Argument::Kind::Constant) return false;
  if (argument.constant.isNone()) return true;
  return parameter.default_value().has_value() && *parameter.default_value() == argument.constant;
}

}  // namespace

std::string functional_name(const graph::Node& node) {
  const c10::OperatorName& name = node.op->operator_name();
  std::string base = name.name;
  if (base.size() > 1 && base.ends_with("_") && !base.ends_with("__")) base.pop_back();
  return base + (name.overload_name.empty() ? "" : "." + name.overload_name);
}

size_t argument_index(const graph::Node& node, std::string_view name) {
  const auto& parameters = node.op->schema().arguments();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name() == name) return i;
  throw Error("export: " + node.op->schema().name() + " has no argument '" + std::string(name) + "'");
}

int64_t integer(const graph::Node& node, std::string_view name) {
  return node.arguments.at(argument_index(node, name)).constant.toInt();
}

std::vector<int64_t> integers(const graph::Node& node, std::string_view name) {
  return node.arguments.at(argument_index(node, name)).constant.toIntVector();
}

std::string dtype_json(at::ScalarType dtype) {
  std::string name = graph::dtype_name(dtype);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

Json call_arguments(const graph::Node& node, std::span<const std::string_view> wanted,
                    const std::function<int(graph::ValueId)>& number_of, std::string& unsupported) {
  const auto& parameters = node.op->schema().arguments();
  Json arguments = Json::object();
  for (std::string_view name : wanted) {
    const size_t i = argument_index(node, name);
    try {
      arguments[std::string(name)] = argument_json(node.arguments.at(i), *parameters[i].real_type(), number_of);
    } catch (const NoForm&) {
      unsupported = name;
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name();
    const auto is = [&](std::string_view other) { return other == name; };
    if (std::any_of(wanted.begin(), wanted.end(), is) || std::any_of(kAboutMemory.begin(), kAboutMemory.end(), is))
      continue;
    if (!has_no_effect(node.arguments.at(i), parameters[i])) unsupported = name;
  }
  return arguments;
}

}  // namespace plumbline::conformance

#include "runtime/graph/io/json_constant.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/error.h"

namespace plumbline::graph {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kQuietNan = 0x7ff8000000000000;

Json float_to_json(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  if (std::isnan(x) && bits != kQuietNan) return {{"float_bits", bits}};
  return real_json(x);
}

double float_from_json(const JsonPlace& place) {
  if (place.json().is_number_float()) return place.json().get<double>();
  if (!place.json().is_object()) place.fail("a number with a point, or {\"float\": \"inf\"}");
  if (const auto bits = place.find("float_bits")) {
    place.expect_only({"float_bits"});
    if (!bits->json().is_number_unsigned()) bits->fail("the 64 bits of a float as an integer");
    return std::bit_cast<double>(bits->json().get<uint64_t>());
  }
  return place.real();
}

c10::complex<double> complex_from_json(const JsonPlace& place) {
  const std::vector<JsonPlace> parts = place.items(2);
  return {float_from_json(parts[0]), float_from_json(parts[1])};
}

std::string type_name(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType)
    return type_name(*type.castRaw<c10::OptionalType>()->getElementType()) + "?";
  if (type.kind() == c10::TypeKind::ListType) return type_name(*type.castRaw<c10::ListType>()->getElementType()) + "[]";
  return type.str();
}

/// Null for a name that type_name() does not give to an element of a constant list.
c10::TypePtr type_of_name(const std::string& name) {
  if (name.ends_with("?")) {
    const c10::TypePtr type = type_of_name(name.substr(0, name.size() - 1));
    return type ? c10::OptionalType::create(type) : nullptr;
  }
  if (name.ends_with("[]")) {
    const c10::TypePtr type = type_of_name(name.substr(0, name.size() - 2));
    return type ? c10::ListType::create(type) : nullptr;
  }
  const c10::TypePtr types[] = {c10::IntType::get(),       c10::FloatType::get(),  c10::BoolType::get(),
                                c10::ComplexType::get(),   c10::NumberType::get(), c10::StringType::get(),
                                c10::DeviceObjType::get(), c10::TensorType::get(), c10::AnyType::get(),
                                c10::SymIntType::get()};
  for (const c10::TypePtr& type : types)
    if (type->str() == name) return type;
  return nullptr;
}

/// Whether a list of `type` may hold `item`; a list would not check it.
bool may_hold(const c10::Type& type, const c10::IValue& item) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return item.isNone() || may_hold(*type.castRaw<c10::OptionalType>()->getElementType(), item);
    case c10::TypeKind::ListType:
      return item.isList() && *item.toList().elementType() == *type.castRaw<c10::ListType>()->getElementType();
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return item.isInt();
    case c10::TypeKind::FloatType:
      return item.isDouble();
    case c10::TypeKind::BoolType:
      return item.isBool();
    case c10::TypeKind::ComplexType:
      return item.isComplexDouble();
    case c10::TypeKind::NumberType:
      return item.isScalar();
    case c10::TypeKind::StringType:
      return item.isString();
    case c10::TypeKind::DeviceObjType:
      return item.isDevice();
    case c10::TypeKind::TensorType:
      return item.isTensor();
    default:
      return type.kind() == c10::TypeKind::AnyType;
  }
}

c10::IValue list_from_json(const JsonPlace& place) {
  place.expect_only({"list", "items"});
  const c10::TypePtr type = type_of_name(place["list"].text());
  if (!type) place["list"].fail("the type of a list's elements, such as int, float, bool, Scalar, str, Device or int?");
  c10::impl::GenericList list(type);
  for (const JsonPlace& item : place["items"].items()) {
    const c10::IValue value = constant_from_json(item);
    if (!may_hold(*type, value)) item.fail("an element of type " + type->str());
    list.push_back(value);
  }
  return list;
}

c10::IValue device_from_json(const JsonPlace& place) {
  try {
    return c10::Device(place.text());
  } catch (const c10::Error&) {
    place.fail("a device that LibTorch knows, such as \"cpu\" or \"cuda:1\"");
  }
}

}  // namespace

Json constant_to_json(const c10::IValue& constant) {
  if (constant.isNone()) return nullptr;
  if (constant.isBool()) return constant.toBool();
  if (constant.isInt()) return constant.toInt();
  if (constant.isDouble()) return float_to_json(constant.toDouble());
  if (constant.isComplexDouble()) {
    const c10::complex<double> z = constant.toComplexDouble();
    return {{"complex", Json::array({float_to_json(z.real()), float_to_json(z.imag())})}};
  }
  if (constant.isString()) return constant.toStringRef();
  if (constant.isDevice()) return {{"device", constant.toDevice().str()}};
  if (constant.isTensor() && !constant.toTensor().defined()) return {{"tensor", nullptr}};
  if (constant.isList()) {
    Json items = Json::array();
    for (const c10::IValue& item : constant.toListRef()) items.push_back(constant_to_json(item));
    return {{"list", type_name(*constant.toList().elementType())}, {"items", std::move(items)}};
  }
  throw Error("graph json: a constant of type " + constant.tagKind() + " has no JSON form");
}

c10::IValue constant_from_json(const JsonPlace& place) {
  const Json& json = place.json();
  if (json.is_null()) return {};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return place.integer();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object()) place.fail("a constant (a list is written as {\"list\": type, \"items\": [...]})");
  if (place.find("list")) return list_from_json(place);
  if (place.find("float") || place.find("float_bits")) return float_from_json(place);
  place.expect_only({"complex", "device", "tensor"});
  if (json.size() != 1) place.fail("a constant with one member");
  if (const auto device = place.find("device")) return device_from_json(*device);
  if (const auto complex = place.find("complex")) return complex_from_json(*complex);
  if (!place["tensor"].is_null()) place["tensor"].fail("null: an undefined tensor");
  return at::Tensor();
}

}  // namespace plumbline::graph

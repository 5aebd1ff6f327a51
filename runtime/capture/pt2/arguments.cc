#include "runtime/capture/pt2/arguments.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/capture/pt2/archive.h"
#include "runtime/error.h"
#include "runtime/graph/schema_types.h"

namespace plumbline::capture::pt2 {
namespace {

using c10::TypeKind;
using nlohmann::json;

/// A float; JSON has no infinities, so they are strings.
double real(const json& value) {
  if (!value.is_string()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  throw Error("'" + text + "' is not a float");
}

/// As graph::fitted(), but refuses what does not fit.
c10::IValue fitted(const c10::IValue& value, const c10::Type& type, std::optional<int> length = std::nullopt) {
  std::optional<c10::IValue> fits = graph::fitted(value, type, length);
  if (!fits) throw Error("it is " + value.type()->str() + " where " + type.str() + " is expected");
  return *std::move(fits);
}

graph::Argument constant(c10::IValue value) {
  graph::Argument argument;
  argument.constant = std::move(value);
  return argument;
}

/// One number (or text, device, ...) for `formal`, which may require a list of it ("int[2] stride" given 1).
graph::Argument single(const c10::IValue& value, const c10::Argument& formal) {
  return constant(fitted(value, *formal.type(), formal.N()));
}

graph::Argument named(const Meaning& meaning, const c10::Argument& formal) {
  if (!meaning.is_value()) return single(meaning.constant, formal);
  graph::Argument argument;
  if (graph::element_type(*formal.type())) {
    argument = single(int64_t{0}, formal);
    argument.kind = graph::Argument::Kind::NumberList;
    argument.values.assign(argument.constant.toListRef().size(), meaning.value);
    return argument;
  }
  argument.kind = graph::Argument::Kind::Value;
  argument.values = {meaning.value};
  return argument;
}

const c10::TypePtr& element_of(const c10::Argument& formal) {
  const c10::TypePtr* const element = graph::element_type(*formal.type());
  if (!element) throw Error("it is a list where " + formal.type()->str() + " is expected");
  return *element;
}

graph::Argument tensor_list(const json& items, const c10::Argument& formal, const Lookup& lookup) {
  graph::Argument argument;
  argument.kind = element_of(formal)->kind() == TypeKind::OptionalType ? graph::Argument::Kind::OptionalTensorList
                                                                       : graph::Argument::Kind::TensorList;
  for (const json& item : items) {
    // For tensors {"name": ...}; for optional ones a union, {"as_none": true} or {"as_tensor": {"name": ...}}.
    if (item.contains("as_none")) {
      argument.values.push_back(graph::kNoValue);
      continue;
    }
    const json& tensor = item.contains("as_tensor") ? item.at("as_tensor") : item;
    const Meaning meaning = lookup(tensor.at("name").get<std::string>());
    const bool fits =
        meaning.is_value() || (meaning.constant.isNone() && argument.kind == graph::Argument::Kind::OptionalTensorList);
    if (!fits)
      throw Error("it is " + meaning.constant.type()->str() + " where " + element_of(formal)->str() + " is expected");
    argument.values.push_back(meaning.value);
  }
  return argument;
}

/// A list of numbers or texts, some of which may be names of values ({"as_name": ...}).
graph::Argument number_list(const json& items, const c10::Argument& formal, const Lookup& lookup,
                            const std::function<c10::IValue(const json&)>& read) {
  const c10::TypePtr& element = element_of(formal);
  if (graph::takes_tensor(*element)) {
    if (items.empty()) return tensor_list(items, formal, lookup);
    throw Error("it is a list of numbers where " + formal.type()->str() + " is expected");
  }
  graph::Argument argument;
  c10::impl::GenericList list(element);
  bool any_value = false;
  for (const json& item : items) {
    Meaning meaning;
    if (item.is_object() && item.contains("as_name"))
      meaning = lookup(item.at("as_name").get<std::string>());
    else
      meaning.constant = read(item.is_object() ? item.begin().value() : item);
    any_value = any_value || meaning.is_value();
    argument.values.push_back(meaning.value);
    list.push_back(fitted(meaning.is_value() ? int64_t{0} : meaning.constant, *element));
  }
  argument.constant = list;
  if (any_value)
    argument.kind = graph::Argument::Kind::NumberList;
  else
    argument.values.clear();
  return argument;
}

c10::IValue read_int(const json& value) { return whole(value); }
c10::IValue read_float(const json& value) { return real(value); }
c10::IValue read_bool(const json& value) { return value.get<bool>(); }
c10::IValue read_string(const json& value) { return value.get<std::string>(); }

c10::IValue read_device(const json& value) {
  const c10::Device device(value.at("type").get<std::string>());
  return device.is_meta() ? device : c10::Device(c10::kCPU);
}

c10::IValue read_complex(const json& value) {
  return c10::complex<double>(real(value.at("real")), real(value.at("imag")));
}

/// The constant of a tag that denotes one; empty for other tags.
std::optional<c10::IValue> read_constant(const std::string& tag, const json& value) {
  if (tag == "as_none") return c10::IValue();
  if (tag == "as_int") return read_int(value);
  if (tag == "as_float") return read_float(value);
  if (tag == "as_bool") return read_bool(value);
  if (tag == "as_string") return read_string(value);
  if (tag == "as_complex") return read_complex(value);
  if (tag == "as_device") return read_device(value);
  if (tag == "as_scalar_type") return static_cast<int64_t>(scalar_type(whole(value)));
  if (tag == "as_layout") return static_cast<int64_t>(layout(whole(value)));
  if (tag == "as_memory_format") return static_cast<int64_t>(memory_format(whole(value)));
  return std::nullopt;
}

bool is_number_union(const std::string& tag) {
  return tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool";
}

}  // namespace

std::string tag_of(const json& argument) {
  if (!argument.is_object() || argument.size() != 1) throw Error("an argument must be an object with exactly one tag");
  return argument.begin().key();
}

Meaning plain_meaning(const json& argument, const Lookup& lookup) {
  const std::string tag = tag_of(argument);
  const json& value = argument.begin().value();
  if (tag == "as_tensor") return lookup(value.at("name").get<std::string>());
  if (tag == "as_optional_tensor") return plain_meaning(value, lookup);
  if (is_number_union(tag)) {
    if (value.contains("as_name")) return lookup(value.at("as_name").get<std::string>());
    return {graph::kNoValue, read_constant(tag_of(value), value.begin().value()).value_or(c10::IValue())};
  }
  if (auto constant = read_constant(tag, value)) return {graph::kNoValue, std::move(*constant)};
  throw Error("an argument of the kind " + tag + " is not supported");
}

graph::Argument convert_argument(const json& argument, const c10::Argument& formal, const Lookup& lookup) {
  const std::string tag = tag_of(argument);
  const json& value = argument.begin().value();
  if (tag == "as_tensors" || tag == "as_optional_tensors") return tensor_list(value, formal, lookup);
  if (tag == "as_ints" || tag == "as_sym_ints") return number_list(value, formal, lookup, read_int);
  if (tag == "as_floats" || tag == "as_sym_floats") return number_list(value, formal, lookup, read_float);
  if (tag == "as_bools" || tag == "as_sym_bools") return number_list(value, formal, lookup, read_bool);
  if (tag == "as_strings") return number_list(value, formal, lookup, read_string);
  return named(plain_meaning(argument, lookup), formal);
}

}  // namespace plumbline::capture::pt2

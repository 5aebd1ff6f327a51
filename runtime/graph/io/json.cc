#include "runtime/graph/io/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/dtype_names.h"
#include "runtime/graph/io/json_constant.h"
#include "runtime/graph/io/operator_named.h"
#include "runtime/graph/schema_types.h"

// Structures are taken apart by structured bindings: a field added to one of them does not compile until it is written
// and read here.
namespace plumbline::graph {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "plumbline-graph/1";
constexpr int kMost = std::numeric_limits<int32_t>::max();

Json id_to_json(ValueId v) { return v == kNoValue ? Json(nullptr) : Json(v); }

Json ids_to_json(const std::vector<ValueId>& ids) {
  Json json = Json::array();
  for (ValueId v : ids) json.push_back(id_to_json(v));
  return json;
}

Json to_json(const GraphInput& input);
Json to_json(const Attribute& attribute);
Json to_json(const ModuleCall& module);
Json to_json(const AutocastRegion& region);
Json to_json(const Argument& argument);
Json to_json(const Result& result);
Json to_json(const Node& node);

template <class Items>
Json list_to_json(const Items& items) {
  Json json = Json::array();
  for (const auto& item : items) json.push_back(to_json(item));
  return json;
}

Json to_json(const GraphInput& input) {
  const auto& [name, value] = input;
  return {{"name", name}, {"value", value}};
}

Json to_json(const Attribute& attribute) {
  const auto& [kind, name, aliases, persistent, tensor, value] = attribute;
  return {{"kind", kind_word(kind)},
          {"name", name},
          {"aliases", aliases},
          {"persistent", persistent},
          {"value", id_to_json(value)}};
}

Json to_json(const ModuleCall& module) {
  const auto& [name, type, begin, end] = module;
  return {{"name", name}, {"type", type}, {"begin", begin}, {"end", end}};
}

Json region_number(int32_t region) { return region == -1 ? Json(nullptr) : Json(region); }

Json to_json(const AutocastRegion& region) {
  const auto& [device, dtype, enabled, cache, outer] = region;
  return {{"device", c10::DeviceTypeName(device, /*lower_case=*/true)},
          {"dtype", dtype_name(dtype)},
          {"enabled", enabled},
          {"cache", cache},
          {"outer", region_number(outer)}};
}

Json to_json(const Argument& argument) {
  const auto& [kind, constant, values] = argument;
  switch (kind) {
    case Argument::Kind::Constant:
      return {{"constant", constant_to_json(constant)}};
    case Argument::Kind::Value:
      return {{"value", values.at(0)}};
    case Argument::Kind::TensorList:
      return {{"tensors", ids_to_json(values)}};
    case Argument::Kind::OptionalTensorList:
      return {{"optional_tensors", ids_to_json(values)}};
    case Argument::Kind::NumberList:
      return {{"numbers", ids_to_json(values)}, {"constant", constant_to_json(constant)}};
  }
  return nullptr;
}

Json to_json(const Result& result) {
  const auto& [is_list, values] = result;
  if (is_list) return {{"list", ids_to_json(values)}};
  return {{"value", id_to_json(values.at(0))}};
}

Json graph_members(const Graph& graph);

Json to_json(const Node& node) {
  const auto& [op, arguments, results, grad_enabled, autocast, branches] = node;
  Json json = {{"op", nullptr},
               {"arguments", list_to_json(arguments)},
               {"results", list_to_json(results)},
               {"grad_enabled", grad_enabled},
               {"autocast", region_number(autocast)}};
  if (op) json["op"] = c10::toString(op->operator_name());
  for (const auto& branch : branches) json["branches"].push_back(graph_members(*branch));
  return json;
}

Json graph_members(const Graph& graph) {
  const auto& [inputs, attributes, nodes, outputs, values, module_calls, autocast] = graph;
  return {{"values", list_to_json(values)},
          {"inputs", list_to_json(inputs)},
          {"attributes", list_to_json(attributes)},
          {"autocast", list_to_json(autocast)},
          {"nodes", list_to_json(nodes)},
          {"outputs", ids_to_json(outputs)},
          {"module_calls", list_to_json(module_calls)}};
}

at::ScalarType dtype_at(const JsonPlace& place) {
  const auto dtype = dtype_from_name(place.text());
  if (!dtype) place.fail("an element type such as f32, bf16 or i64");
  return *dtype;
}

class Reader {
 public:
  /// With `format`, the graph says its format, as the outermost one does.
  Graph read(const JsonPlace& place, bool format) {
    if (format) {
      place.expect_only({"format", "values", "inputs", "attributes", "autocast", "nodes", "outputs", "module_calls"});
      if (place["format"].text() != kFormat) place["format"].fail("\"" + std::string(kFormat) + "\"");
    } else {
      place.expect_only({"values", "inputs", "attributes", "autocast", "nodes", "outputs", "module_calls"});
    }
    auto& [inputs, attributes, nodes, outputs, values, module_calls, autocast] = graph_;
    for (const JsonPlace& item : place["values"].items()) values.push_back(value_from_json(item));
    for (const JsonPlace& item : place["inputs"].items()) inputs.push_back(input(item));
    for (const JsonPlace& item : place["attributes"].items()) attributes.push_back(attribute(item));
    for (const JsonPlace& item : place["autocast"].items()) autocast.push_back(region(item));
    for (const JsonPlace& item : place["nodes"].items()) nodes.push_back(node(item));
    outputs = ids(place["outputs"]);
    for (const JsonPlace& item : place["module_calls"].items()) module_calls.push_back(module(item));
    try {
      verify(graph_);
    } catch (const Error& error) {
      place.fail(std::string("a graph in order (") + error.what() + ")");
    }
    return std::move(graph_);
  }

 private:
  ValueId id(const JsonPlace& place) const { return place.small(0, static_cast<int>(graph_.values.size()) - 1); }
  ValueId id_or_none(const JsonPlace& place) const { return place.is_null() ? kNoValue : id(place); }
  std::vector<ValueId> ids(const JsonPlace& place) const {
    std::vector<ValueId> values;
    for (const JsonPlace& item : place.items()) values.push_back(id_or_none(item));
    return values;
  }

  GraphInput input(const JsonPlace& place) const {
    place.expect_only({"name", "value"});
    GraphInput read;
    auto& [name, value] = read;
    name = place["name"].text();
    value = id(place["value"]);
    return read;
  }

  Attribute attribute(const JsonPlace& place) const {
    place.expect_only({"kind", "name", "aliases", "persistent", "value"});
    Attribute read;
    auto& [kind, name, aliases, persistent, tensor, value] = read;
    kind = static_cast<AttributeKind>(place["kind"].one_of({"parameter", "buffer", "constant"}));
    name = place["name"].text();
    aliases = place["aliases"].texts();
    persistent = place["persistent"].boolean();
    value = id_or_none(place["value"]);
    return read;
  }

  int32_t region_or_none(const JsonPlace& place) const {
    return place.is_null() ? -1 : place.small(0, static_cast<int>(graph_.autocast.size()) - 1);
  }

  AutocastRegion region(const JsonPlace& place) const {
    place.expect_only({"device", "dtype", "enabled", "cache", "outer"});
    AutocastRegion read;
    auto& [device, dtype, enabled, cache, outer] = read;
    try {
      device = c10::Device(place["device"].text()).type();
    } catch (const c10::Error&) {
      place["device"].fail("a type of device such as \"cpu\" or \"cuda\"");
    }
    dtype = dtype_at(place["dtype"]);
    enabled = place["enabled"].boolean();
    cache = place["cache"].boolean();
    outer = region_or_none(place["outer"]);
    return read;
  }

  ModuleCall module(const JsonPlace& place) const {
    place.expect_only({"name", "type", "begin", "end"});
    ModuleCall read;
    auto& [name, type, begin, end] = read;
    name = place["name"].text();
    type = place["type"].text();
    begin = place["begin"].small(0, static_cast<int>(graph_.nodes.size()));
    end = place["end"].small(begin, static_cast<int>(graph_.nodes.size()));
    return read;
  }

  Argument argument(const JsonPlace& place, const c10::Argument& parameter) const {
    place.expect_only({"constant", "value", "tensors", "optional_tensors", "numbers"});
    if (place.json().size() != (place.find("numbers") ? 2u : 1u)) place.fail("one kind of argument");
    Argument read;
    auto& [kind, constant, values] = read;
    if (const auto value = place.find("value")) {
      kind = Argument::Kind::Value;
      values.push_back(id(*value));
    } else if (const auto tensors = place.find("tensors")) {
      kind = Argument::Kind::TensorList;
      values = ids(*tensors);
    } else if (const auto optional_tensors = place.find("optional_tensors")) {
      kind = Argument::Kind::OptionalTensorList;
      values = ids(*optional_tensors);
    } else {
      std::optional<c10::IValue> fits = fitted(constant_from_json(place["constant"]), *parameter.type(), parameter.N());
      if (!fits) place["constant"].fail("a constant of type " + parameter.type()->str());
      constant = *std::move(fits);
      const auto numbers = place.find("numbers");
      if (!numbers) return read;
      kind = Argument::Kind::NumberList;
      values = ids(*numbers);
      if (!constant.isList() || constant.toListRef().size() != values.size())
        place["constant"].fail("a list of " + std::to_string(values.size()));
    }
    return read;
  }

  Result result(const JsonPlace& place, const c10::Type& type) const {
    place.expect_only({"value", "list"});
    if (place.json().size() != 1) place.fail("one kind of result");
    Result read;
    auto& [is_list, values] = read;
    const auto list = place.find("list");
    is_list = list.has_value();
    values = list ? ids(*list) : std::vector<ValueId>{id_or_none(place["value"])};
    const c10::TypePtr* element = element_type(type);
    if (is_list && (element == nullptr || !takes_tensor(**element)))
      place.fail("a \"value\", as the operator returns " + type.str());
    if (!is_list && values[0] != kNoValue && element != nullptr)
      place.fail("a \"list\", as the operator returns " + type.str());
    return read;
  }

  Node node(const JsonPlace& place) const {
    place.expect_only({"op", "arguments", "results", "grad_enabled", "autocast", "branches"});
    Node read;
    auto& [op, arguments, results, grad_enabled, autocast, branches] = read;
    if (!place["op"].is_null()) {
      op = operator_named(place["op"].text());
      if (!op) place["op"].fail("an operator that this LibTorch knows");
    }
    static const std::vector<c10::Argument> none;  // of a split marker
    const std::vector<c10::Argument>& parameters = op ? op->schema().arguments() : none;
    const std::vector<JsonPlace> given = place["arguments"].items(parameters.size());
    for (size_t i = 0; i < given.size(); ++i) arguments.push_back(argument(given[i], parameters[i]));
    const std::vector<c10::Argument>& returns = op ? op->schema().returns() : none;
    const std::vector<JsonPlace> made = place["results"].items(returns.size());
    for (size_t i = 0; i < made.size(); ++i) results.push_back(result(made[i], *returns[i].type()));
    grad_enabled = place["grad_enabled"].boolean();
    autocast = region_or_none(place["autocast"]);
    if (op && op->operator_name().name == "plumbline::cond") {
      read_branches(place, read);
    } else if (const auto graphs = place.find("branches")) {
      graphs->fail("no branches, which only plumbline::cond has");
    }
    return read;
  }

  /// Two graphs that take the operands of `cond` and return its results.
  static void read_branches(const JsonPlace& place, Node& cond) {
    const Argument &predicate = cond.arguments[0], &operands = cond.arguments[1];
    if (predicate.kind != Argument::Kind::Value) place["arguments"].items()[0].fail("a \"value\", the predicate");
    if (operands.kind != Argument::Kind::TensorList || std::ranges::count(operands.values, kNoValue) > 0)
      place["arguments"].items()[1].fail("\"tensors\", all of them values, the operands");
    const Result& results = cond.results[0];
    for (const JsonPlace& item : place["branches"].items(2)) {
      Graph branch = Reader().read(item, /*format=*/false);
      item["inputs"].items(operands.values.size());
      if (results.is_list) item["outputs"].items(results.values.size());
      cond.branches.push_back(std::make_shared<const Graph>(std::move(branch)));
    }
  }

  Graph graph_;
};

}  // namespace

Json to_json(const Value& value) {
  const auto& [dtype, sizes, requires_grad, storage, kind] = value;
  constexpr const char* kinds[] = {"tensor", "int", "float", "bool"};
  return {{"kind", kinds[static_cast<size_t>(kind)]},
          {"dtype", dtype_name(dtype)},
          {"sizes", sizes},
          {"requires_grad", requires_grad},
          {"storage", storage}};
}

Value value_from_json(const JsonPlace& place) {
  place.expect_only({"kind", "dtype", "sizes", "requires_grad", "storage"});
  Value read;
  auto& [dtype, sizes, requires_grad, storage, kind] = read;
  dtype = dtype_at(place["dtype"]);
  sizes = place["sizes"].integers(0);
  requires_grad = place["requires_grad"].boolean();
  storage = place["storage"].small(-1, kMost);
  kind = static_cast<ValueKind>(place["kind"].one_of({"tensor", "int", "float", "bool"}));
  return read;
}

Json to_json(const Graph& graph) {
  Json json = graph_members(graph);
  json["format"] = kFormat;
  return json;
}

Graph graph_from_json(const JsonPlace& place) { return Reader().read(place, /*format=*/true); }

}  // namespace plumbline::graph

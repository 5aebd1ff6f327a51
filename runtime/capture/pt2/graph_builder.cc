#include "runtime/capture/pt2/graph_builder.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/capture/pt2/archive.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/graph/schema_types.h"
#include "runtime/io/json_place.h"
#include "runtime/text/in_quotes.h"

namespace plumbline::capture::pt2 {
namespace {

using nlohmann::json;

constexpr std::string_view kOperators = "torch.ops.", kHigherOrder = "torch.ops.higher_order.";

/// Python's operators on symbolic numbers and their counterparts among ours (runtime/graph/operators.cc).
const std::map<std::string, std::string>& number_operators() {
  static const std::map<std::string, std::string> operators = {
      {"_operator.add", "number_add"},
      {"_operator.sub", "number_sub"},
      {"_operator.mul", "number_mul"},
      {"_operator.truediv", "number_truediv"},
      {"_operator.floordiv", "number_floordiv"},
      {"_operator.mod", "number_mod"},
      {"_operator.pow", "number_pow"},
      {"_operator.neg", "number_neg"},
      {"_operator.eq", "number_eq"},
      {"_operator.ne", "number_ne"},
      {"_operator.lt", "number_lt"},
      {"_operator.le", "number_le"},
      {"_operator.gt", "number_gt"},
      {"_operator.ge", "number_ge"},
      {"_operator.and_", "number_and"},
      {"_operator.or_", "number_or"},
      {"math.trunc", "number_trunc"},
      {"math.floor", "number_floor"},
      {"math.ceil", "number_ceil"},
      {"torch.sym_not", "number_not"},
      {"torch.sym_min", "number_min"},
      {"torch.sym_max", "number_max"},
      {"torch.sym_int", "number_trunc"},
      {"torch.sym_float", "number_float"},
      {"torch.sym_ite", "number_ite"},
      {"torch.sym_sqrt", "number_sqrt"},
      {"torch._sym_sqrt", "number_sqrt"},
  };
  return operators;
}

/// "torch.ops.aten.add.Tensor" -> aten::add.Tensor; the overload "default" has no name in the dispatcher.
c10::OperatorHandle find_operator(const std::string& target) {
  const std::string path = target.substr(kOperators.size());
  const size_t first = path.find('.'), last = path.rfind('.');
  if (first == std::string::npos || first == last) throw Error("'" + target + "' is not an operator with an overload");
  const std::string name = path.substr(0, first) + "::" + path.substr(first + 1, last - first - 1);
  const std::string overload = path.substr(last + 1);
  const auto op = c10::Dispatcher::singleton().findSchema({name, overload == "default" ? "" : overload});
  if (!op || !op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU))
    throw Error(
        "this process has no kernel for the operator; only operators registered from C++ can run (load their library, "
        "or export the model without them)");
  // A file that torch.export wrote has none: only an attacker's has.
  if (name == "aten::from_file") throw Error("the operator maps a file of this machine; a program may not have it");
  return *op;
}

std::string module_of(const json& node) {
  if (!node.contains("metadata") || !node["metadata"].contains("nn_module_stack")) return "";
  std::string stack = node["metadata"]["nn_module_stack"].get<std::string>();
  stack.erase(0, stack.rfind(';') + 1);  // npos + 1 is 0
  const size_t comma = stack.find(',');
  return comma == std::string::npos ? "" : stack.substr(comma + 1, stack.find(',', comma + 1) - comma - 1);
}

std::string place(const json& node) {
  const std::string module = module_of(node);
  const std::string name = node.contains("name") && node["name"].is_string() ? node["name"].get<std::string>() : "";
  return "node " + in_quotes(name) + " (" + node.value("target", "no target") + ")" +
         (module.empty() ? "" : " in module " + in_quotes(module));
}

/// The outputs of a node with lists flattened: {"as_tensor": ...}, {"as_none": ...}, {"as_sym_int": ...}.
std::vector<json> flat_outputs(const json& node) {
  std::vector<json> out;
  for (const json& output : node.at("outputs")) {
    if (output.contains("as_tensors"))
      for (const json& item : output["as_tensors"]) out.push_back({{"as_tensor", item}});
    else if (output.contains("as_optional_tensors"))
      for (const json& item : output["as_optional_tensors"]) out.push_back(item);
    else
      out.push_back(output);
  }
  return out;
}

/// The name that an output, or the input of a subgraph, binds; empty if it has none.
std::string name_of(const json& output) {
  const std::string tag = tag_of(output);
  const json& value = output.begin().value();
  if (tag == "as_tensor") return value.at("name").get<std::string>();
  if (tag == "as_optional_tensor") return name_of(value);
  if (tag.starts_with("as_sym_") && value.contains("as_name")) return value["as_name"].get<std::string>();
  return "";
}

const json& graph_argument(const json& node, size_t index) {
  return node.at("inputs").at(index).at("arg").at("as_graph").at("graph");
}

}  // namespace

graph::Value value_of_meta(const json& meta) {
  graph::Value value;
  value.dtype = scalar_type(whole(meta.at("dtype")));
  value.requires_grad = meta.at("requires_grad").get<bool>();
  for (const json& size : meta.at("sizes")) {
    int64_t number = 0;
    if (size.contains("as_int"))
      number = whole(size["as_int"]);
    else if (const json& hint = size.at("as_expr").at("hint"); hint.is_object() && hint.contains("as_int"))
      number = whole(hint["as_int"]);
    value.sizes.push_back(number);
  }
  if (!are_sizes_of_a_tensor(value.sizes)) throw Error("sizes " + meta.at("sizes").dump() + " are of no tensor");
  return value;
}

void GraphBuilder::add_nodes(const json& source, Names& names, const Region& region) {
  for (const json& node : source.at("nodes")) {
    try {
      add_node(source, node, names, region);
    } catch (const InputError&) {
      throw;  // of a node in a subgraph
    } catch (const json::exception& error) {
      throw InputError(place(node) + " is malformed: " + json_reason(error));
    } catch (const std::exception& error) {
      throw InputError(place(node) + ": " + graph::error_line(error));
    }
  }
}

void GraphBuilder::add_node(const json& source, const json& node, Names& names, const Region& region) {
  const auto target = node.at("target").get<std::string>();
  if (target == "torch.ops.pippy._pipe_split.default") {
    append(graph::Node{}, node);
  } else if (target == "torch.ops.higher_order.wrap_with_set_grad_enabled") {
    Region inner = region;
    inner.grad_enabled = node.at("inputs").at(0).at("arg").at("as_bool").get<bool>();
    add_region(node, graph_argument(node, 1), 2, names, inner);
  } else if (target == "torch.ops.higher_order.wrap_with_autocast") {
    Region inner = region;
    inner.autocast = add_autocast(node, region.autocast);
    add_region(node, graph_argument(node, 4), 5, names, inner);
  } else if (target == "torch.ops.higher_order.cond") {
    add_cond(source, node, names, region);
  } else if (target.starts_with(kHigherOrder)) {
    throw Error(
        "this higher-order operator is not supported; of those only wrap_with_set_grad_enabled, wrap_with_autocast and "
        "cond are");
  } else if (target.starts_with(kOperators)) {
    add_call(source, node, find_operator(target), false, names, region);
  } else if (target == "_operator.pos") {
    names[name_of(node.at("outputs").at(0))] = operand(node.at("inputs").at(0).at("arg"), names);
  } else if (const auto it = number_operators().find(target); it != number_operators().end()) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("plumbline::" + it->second).c_str(), "");
    add_call(source, node, op, true, names, region);
  } else {
    throw Error("this Python function is not supported");
  }
}

void GraphBuilder::add_call(const json& source, const json& node, const c10::OperatorHandle& op, bool by_position,
                            Names& names, const Region& region) {
  const c10::FunctionSchema& schema = op.schema();
  const auto& formals = schema.arguments();
  graph::Node call;
  call.op = op;
  call.grad_enabled = region.grad_enabled;
  call.autocast = region.autocast;
  call.arguments.resize(formals.size());
  const json& inputs = node.at("inputs");
  std::vector<std::optional<std::string>> given(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (auto name = inputs[i].at("name").get<std::string>(); !by_position && !name.empty()) given[i] = std::move(name);
  const std::vector<std::optional<size_t>> matched = graph::match_formals(schema, given, /*optional_is_default=*/true);
  const Lookup lookup = lookup_in(names);
  for (size_t i = 0; i < formals.size(); ++i) {
    if (!matched[i]) {
      call.arguments[i].constant = formals[i].default_value().value_or(c10::IValue());
      continue;
    }
    try {
      call.arguments[i] = convert_argument(inputs[*matched[i]].at("arg"), formals[i], lookup);
    } catch (const Error& error) {
      throw Error("argument " + in_quotes(formals[i].name()) + ": " + error.what());
    }
  }

  const json& outputs = node.at("outputs");
  if (outputs.size() > schema.returns().size())
    throw Error(std::to_string(outputs.size()) + " outputs, but the operator has " +
                std::to_string(schema.returns().size()));
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    graph::Result result;
    if (i < outputs.size())
      result = define(source, outputs[i], names);
    else
      result.values = {graph::kNoValue};
    // From now on a name of the changed tensor refers to the call's result.
    const c10::AliasInfo* alias = schema.returns()[i].alias_info();
    if (alias && alias->isWrite() && !result.is_list && result.values[0] != graph::kNoValue) {
      for (size_t a = 0; a < formals.size(); ++a) {
        const c10::AliasInfo* argument = formals[a].alias_info();
        if (!argument || !argument->isWrite() || argument->beforeSets() != alias->beforeSets()) continue;
        if (call.arguments[a].kind != graph::Argument::Kind::Value) continue;
        changed_to_.resize(graph_.values.size(), graph::kNoValue);
        changed_to_[call.arguments[a].values[0]] = result.values[0];
      }
    }
    call.results.push_back(std::move(result));
  }
  append(std::move(call), node);
}

void GraphBuilder::append(graph::Node node, const json& source) {
  std::string stack;
  if (source.contains("metadata") && source["metadata"].contains("nn_module_stack"))
    stack = source["metadata"]["nn_module_stack"].get<std::string>();
  modules_.add(static_cast<int32_t>(graph_.nodes.size()), stack);
  graph_.nodes.push_back(std::move(node));
}

graph::ValueId GraphBuilder::define_tensor(const json& source, const std::string& name, Names& names) {
  const json& metas = source.at("tensor_values");
  const graph::ValueId v = graph_.add_value(metas.contains(name) ? value_of_meta(metas[name]) : graph::Value());
  names[name] = {Binding::Kind::Value, v, {}};
  return v;
}

graph::Result GraphBuilder::define(const json& source, const json& output, Names& names) {
  graph::Result result;
  const std::string tag = tag_of(output);
  if (tag == "as_tensors" || tag == "as_optional_tensors") {
    result.is_list = true;
    for (const json& item : output.begin().value()) {
      if (item.contains("as_none"))
        result.values.push_back(graph::kNoValue);
      else
        result.values.push_back(define_tensor(
            source, (item.contains("as_tensor") ? item["as_tensor"] : item).at("name").get<std::string>(), names));
    }
    return result;
  }
  const std::string name = name_of(output);
  if (name.empty()) {  // None, or a number that the export already knew
    result.values = {graph::kNoValue};
    return result;
  }
  if (tag == "as_tensor" || tag == "as_optional_tensor") {
    result.values = {define_tensor(source, name, names)};
    return result;
  }
  graph::Value number;
  if (tag == "as_sym_int") {
    number.kind = graph::ValueKind::Int;
    number.dtype = at::kLong;
  } else if (tag == "as_sym_float") {
    number.kind = graph::ValueKind::Float;
    number.dtype = at::kDouble;
  } else if (tag == "as_sym_bool") {
    number.kind = graph::ValueKind::Bool;
    number.dtype = at::kBool;
  } else {
    throw Error("an output of the kind " + tag + " is not supported");
  }
  result.values = {graph_.add_value(std::move(number))};
  names[name] = {Binding::Kind::Value, result.values[0], {}};
  return result;
}

int32_t GraphBuilder::add_autocast(const json& node, int32_t outer) {
  const auto argument = [&](size_t i) -> const json& { return node.at("inputs").at(i).at("arg"); };
  const c10::Device device(argument(0).at("as_string").get<std::string>());
  graph::AutocastRegion region;
  region.device = c10::kCPU;  // as everywhere in the program; the default dtype is the original device's
  region.dtype = device.is_cpu() ? at::kBFloat16 : at::kHalf;
  if (argument(1).contains("as_scalar_type")) region.dtype = scalar_type(whole(argument(1)["as_scalar_type"]));
  region.enabled = argument(2).at("as_bool").get<bool>();
  region.cache = argument(3).contains("as_none") || argument(3).at("as_bool").get<bool>();
  region.outer = outer;
  graph_.autocast.push_back(region);
  return static_cast<int32_t>(graph_.autocast.size()) - 1;
}

void GraphBuilder::add_region(const json& node, const json& subgraph, size_t first_operand, Names& names,
                              const Region& region) {
  std::vector<Binding> operands;
  const json& inputs = node.at("inputs");
  for (size_t i = first_operand; i < inputs.size(); ++i) operands.push_back(operand(inputs[i].at("arg"), names));
  inline_graph(node, subgraph, operands, names, region);
}

void GraphBuilder::inline_graph(const json& node, const json& subgraph, const std::vector<Binding>& operands,
                                Names& names, const Region& region) {
  const json& inputs = subgraph.at("inputs");
  if (inputs.size() != operands.size())
    throw Error("its subgraph takes " + std::to_string(inputs.size()) + " inputs and is given " +
                std::to_string(operands.size()));
  Names inner;
  for (size_t i = 0; i < operands.size(); ++i)
    if (const std::string name = name_of(inputs[i]); !name.empty()) inner[name] = operands[i];
  add_nodes(subgraph, inner, region);
  const std::vector<json> outer_outputs = flat_outputs(node);
  if (outer_outputs.empty()) return;
  const std::vector<json> inner_outputs = flat_outputs(subgraph);
  if (outer_outputs.size() != inner_outputs.size())
    throw Error("its subgraph has " + std::to_string(inner_outputs.size()) + " outputs and the node " +
                std::to_string(outer_outputs.size()));
  for (size_t i = 0; i < outer_outputs.size(); ++i)
    if (const std::string name = name_of(outer_outputs[i]); !name.empty())
      names[name] = operand(inner_outputs[i], inner);
}

void GraphBuilder::add_cond(const json& source, const json& node, Names& names, const Region& region) {
  const json& inputs = node.at("inputs");
  const json& listed = inputs.at(3).at("arg");
  if (!listed.contains("as_tensors")) throw Error("operands of cond must be tensors, not " + tag_of(listed));
  const Meaning pred = plain_meaning(inputs.at(0).at("arg"), lookup_in(names));
  if (!pred.is_value()) {  // already known at export
    std::vector<Binding> operands;
    for (const json& item : listed["as_tensors"]) operands.push_back(operand({{"as_tensor", item}}, names));
    return inline_graph(node, graph_argument(node, pred.constant.toScalar().toBool() ? 1 : 2), operands, names, region);
  }
  graph::Node cond;
  cond.op = c10::Dispatcher::singleton().findSchemaOrThrow("plumbline::cond", "");
  cond.grad_enabled = region.grad_enabled;
  cond.autocast = region.autocast;
  cond.arguments.resize(2);
  cond.arguments[0].kind = graph::Argument::Kind::Value;
  cond.arguments[0].values = {pred.value};
  cond.arguments[1] = convert_argument(listed, cond.op->schema().arguments()[1], lookup_in(names));
  for (size_t which : {1, 2}) {
    const json& subgraph = graph_argument(node, which);
    auto branch = std::make_shared<graph::Graph>();
    GraphBuilder builder(*branch);
    Names inner;
    for (const json& input : subgraph.at("inputs")) {
      const std::string name = name_of(input);
      branch->inputs.push_back({name, builder.define_tensor(subgraph, name, inner)});
    }
    if (branch->inputs.size() != cond.arguments[1].values.size())
      throw Error("its branch takes " + std::to_string(branch->inputs.size()) + " inputs and is given " +
                  std::to_string(cond.arguments[1].values.size()));
    builder.add_nodes(subgraph, inner);
    for (const json& output : flat_outputs(subgraph)) {
      const Meaning meaning = plain_meaning(output, builder.lookup_in(inner));
      if (!meaning.is_value() && !meaning.constant.isNone()) throw Error("a branch of cond must return tensors");
      branch->outputs.push_back(meaning.value);
    }
    graph::verify(*branch);
    cond.branches.push_back(std::move(branch));
  }
  graph::Result result;
  result.is_list = true;
  for (const json& output : flat_outputs(node)) {
    const std::string name = name_of(output);
    result.values.push_back(name.empty() ? graph::kNoValue : define_tensor(source, name, names));
  }
  cond.results = {std::move(result)};
  append(std::move(cond), node);
}

Binding GraphBuilder::operand(const json& argument, const Names& names) {
  // A name keeps its binding: an attribute that the subgraph does not use still gets no value.
  if (const std::string name = name_of(argument); !name.empty()) {
    const auto it = names.find(name);
    if (it == names.end()) throw Error("it uses " + in_quotes(name) + ", which nothing before it defines");
    return it->second;
  }
  return {Binding::Kind::Constant, graph::kNoValue, plain_meaning(argument, lookup_in(names)).constant};
}

Lookup GraphBuilder::lookup_in(const Names& names) {
  return [this, &names](const std::string& name) { return resolve(names, name); };
}

Meaning GraphBuilder::resolve(const Names& names, const std::string& name) {
  const auto it = names.find(name);
  if (it == names.end()) throw Error("it uses " + in_quotes(name) + ", which nothing before it defines");
  const Binding& binding = it->second;
  if (binding.kind == Binding::Kind::Constant) return {graph::kNoValue, binding.constant};
  if (binding.kind == Binding::Kind::Value) return {latest(binding.index), {}};
  graph::Attribute& attribute = graph_.attributes[binding.index];
  if (attribute.value == graph::kNoValue) {
    graph::Value value;
    value.dtype = attribute.tensor.scalar_type();
    value.sizes = attribute.tensor.sizes().vec();
    value.requires_grad = attribute.tensor.requires_grad();
    attribute.value = graph_.add_value(std::move(value));
  }
  return {latest(attribute.value), {}};
}

graph::ValueId GraphBuilder::latest(graph::ValueId v) {
  graph::ValueId end = v;
  while (end < static_cast<graph::ValueId>(changed_to_.size()) && changed_to_[end] != graph::kNoValue)
    end = changed_to_[end];
  while (v != end) {  // shortens the path for the next look-up
    const graph::ValueId next = changed_to_[v];
    changed_to_[v] = end;
    v = next;
  }
  return end;
}

graph::ValueId GraphBuilder::as_tensor(graph::ValueId number) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::scalar_tensor", "");
  graph::Value value;
  value.dtype = graph_.values[number].dtype;
  graph::Node node;
  node.op = op;
  node.arguments.resize(op.schema().arguments().size());
  node.arguments[0].kind = graph::Argument::Kind::Value;
  node.arguments[0].values = {number};
  node.arguments[1].constant = static_cast<int64_t>(value.dtype);
  graph::Result result;
  result.values = {graph_.add_value(std::move(value))};
  const graph::ValueId v = result.values[0];
  node.results.push_back(std::move(result));
  append(std::move(node), json::object());
  return v;
}

}  // namespace plumbline::capture::pt2

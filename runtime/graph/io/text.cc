#include "runtime/graph/io/text.h"

#include <cmath>
#include <cstdlib>
#include <ranges>
#include <sstream>

#include "runtime/error.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/dtype_names.h"
#include "runtime/text/join.h"
#include "runtime/text/significant.h"

namespace plumbline::graph {
namespace {

/// "a, b": what `text` makes of each item.
template <class Range, class Text>
std::string listed(const Range& items, const Text& text) {
  return join(items | std::views::transform(text));
}

template <class Range, class Text>
std::string in_brackets(const Range& items, const Text& text) {
  return "[" + listed(items, text) + "]";
}

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::string float_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  std::string text;
  // The shortest form that reads back to the same bits.
  for (int digits : {6, 12, 17}) {
    text = significant(x, digits);
    if (std::strtod(text.c_str(), nullptr) == x) break;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string constant_text(const c10::IValue& value) {
  if (value.isNone() || (value.isTensor() && !value.toTensor().defined())) return "None";
  if (value.isBool()) return value.toBool() ? "True" : "False";
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isDouble()) return float_text(value.toDouble());
  if (value.isComplexDouble()) {
    const c10::complex<double> z = value.toComplexDouble();
    return "complex(" + float_text(z.real()) + ", " + float_text(z.imag()) + ")";
  }
  if (value.isString()) return in_quotes(value.toStringRef());
  if (value.isDevice()) return "device " + in_quotes(value.toDevice().str());
  if (value.isList()) return in_brackets(value.toListRef(), constant_text);
  throw Error("graph text: a constant of type " + value.tagKind() + " has no text form");
}

std::string id_text(ValueId v) { return v == kNoValue ? "None" : "%" + std::to_string(v); }

std::string argument_text(const Argument& argument) {
  if (argument.kind == Argument::Kind::Constant) return constant_text(argument.constant);
  if (argument.kind == Argument::Kind::Value) return id_text(argument.values[0]);
  if (argument.kind == Argument::Kind::NumberList) {
    const auto constants = argument.constant.toListRef();
    return in_brackets(std::views::iota(size_t{0}, argument.values.size()), [&](size_t i) {
      return argument.values[i] == kNoValue ? constant_text(constants[i]) : id_text(argument.values[i]);
    });
  }
  return in_brackets(argument.values, id_text);
}

std::string definition_text(const Graph& graph, ValueId v) {
  if (v == kNoValue) return "None";
  const Value& value = graph.values[v];
  return id_text(v) + ": " + value_text(value);
}

std::string result_text(const Graph& graph, const Result& result) {
  if (!result.is_list) return definition_text(graph, result.values[0]);
  return in_brackets(result.values, [&](ValueId v) { return definition_text(graph, v); });
}

std::string region_text(const AutocastRegion& region) {
  std::string text = c10::DeviceTypeName(region.device, /*lower_case=*/true) + " " + dtype_name(region.dtype);
  if (!region.enabled) text += " disabled";
  if (!region.cache) text += " no_cache";
  if (region.outer != -1) text += " in " + std::to_string(region.outer);
  return text;
}

void print(const Graph& graph, const std::string& indent, std::ostringstream& out) {
  for (const GraphInput& input : graph.inputs)
    out << indent << "input " << definition_text(graph, input.value) << " = " << in_quotes(input.name) << '\n';
  for (const Attribute& attribute : graph.attributes) {
    out << indent << kind_word(attribute.kind) << ' ';
    if (attribute.value != kNoValue) out << definition_text(graph, attribute.value) << ' ';
    out << "= " << in_quotes(attribute.name);
    for (const std::string& alias : attribute.aliases) out << " also " << in_quotes(alias);
    out << (attribute.persistent ? "\n" : " transient\n");
  }
  for (size_t i = 0; i < graph.autocast.size(); ++i)
    out << indent << "autocast " << i << " = " << region_text(graph.autocast[i]) << '\n';
  for (const Node& node : graph.nodes) {
    out << indent << to_text(graph, node) << '\n';
    for (size_t i = 0; i < node.branches.size(); ++i) {
      out << indent << (i == 0 ? "then {" : "else {") << '\n';
      print(*node.branches[i], indent + "  ", out);
      out << indent << "}\n";
    }
  }
  out << indent << (graph.outputs.empty() ? "return" : "return ") << listed(graph.outputs, id_text) << '\n';
  for (const ModuleCall& module : graph.module_calls)
    out << indent << "module " << in_quotes(module.name) << ' ' << in_quotes(module.type) << ' ' << module.begin << ' '
        << module.end << '\n';
}

}  // namespace

std::string value_text(const Value& value) {
  switch (value.kind) {
    case ValueKind::Int:
      return "int";
    case ValueKind::Float:
      return "float";
    case ValueKind::Bool:
      return "bool";
    case ValueKind::Tensor:
      break;
  }
  return describe(value.dtype, value.sizes) + (value.requires_grad ? "*" : "");
}

std::string to_text(const Graph& graph, const Node& node) {
  if (node.is_split()) return "pipe_split";
  std::string text = listed(node.results, [&](const Result& result) { return result_text(graph, result); });
  if (!text.empty()) text += " = ";
  text += c10::toString(node.op->operator_name());
  text += "(" + listed(node.arguments, argument_text) + (node.grad_enabled ? ")" : ") no_grad");
  if (node.autocast != -1) text += " autocast " + std::to_string(node.autocast);
  return text;
}

std::string to_text(const Graph& graph) {
  std::ostringstream out;
  print(graph, "", out);
  return out.str();
}

}  // namespace plumbline::graph

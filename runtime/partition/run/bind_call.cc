#include "runtime/partition/run/bind_call.h"

#include <ATen/core/jit_type.h>

#include <array>

#include "runtime/error.h"
#include "runtime/graph/schema_types.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {
namespace {

using Kind = JointArgument::Kind;

/// What is said of one node and one of its arguments while its call is bound.
class Binder {
 public:
  Binder(const JointGraph& graph, const JointNode& node, bool any_layout)
      : graph_(graph), node_(node), any_layout_(any_layout) {}

  graph::Node bind() {
    const auto op = c10::Dispatcher::singleton().findSchema(
        {op_name(), node_.overload == "default" ? std::string() : node_.overload});
    if (!op) refuse("this LibTorch has no operator " + node_.op + "." + node_.overload);
    graph::Node call;
    call.op = *op;
    const c10::FunctionSchema& schema = op->schema();
    const std::vector<c10::Argument>& parameters = schema.arguments();
    std::vector<std::optional<std::string>> names(node_.args.size());
    for (const auto& [name, argument] : node_.kwargs) names.emplace_back(name);
    const std::vector<std::optional<size_t>> given = matched(schema, names);
    call.arguments.resize(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      at_ = parameters[i].name();
      if (!given[i])
        call.arguments[i].constant = *parameters[i].default_value();
      else
        call.arguments[i] = take(argument(*given[i]), *parameters[i].type(), parameters[i].N());
    }
    return call;
  }

 private:
  std::string op_name() const {
    const bool views = node_.op == "aten::view" && (node_.overload.empty() || node_.overload == "default");
    return views && any_layout_ ? "aten::reshape" : node_.op;
  }

  std::vector<std::optional<size_t>> matched(const c10::FunctionSchema& schema,
                                             const std::vector<std::optional<std::string>>& names) const try {
    return graph::match_formals(schema, names, /*optional_is_default=*/false);
  } catch (const Error& error) {
    refuse(error.what());
  }

  const JointArgument& argument(size_t i) const {
    const size_t positional = node_.args.size();
    return i < positional ? node_.args[i] : node_.kwargs[i - positional].second;
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw InputError("node '" + node_.name + "' (" + node_.op + ") cannot be executed: " + reason);
  }
  [[noreturn]] void refuse_argument(const JointArgument& argument, const c10::Type& type) const {
    static constexpr std::array kNames = {
        "None",     "a node",   "a bool",          "an integer",        "a number", "complex", "a string", "a dtype",
        "a device", "a layout", "a memory format", "a symbolic number", "a list",   "a slice", "Python's "};
    refuse("argument '" + at_ + "' is " + kNames.at(static_cast<size_t>(argument.kind)) +
           (argument.kind == Kind::Other ? argument.text : "") + ", where " + type.annotation_str() + " is expected");
  }

  /// The number that a node stands for, if it is one.
  std::optional<JointArgument> number_of(const JointArgument& argument) const {
    if (argument.kind != Kind::Node) return std::nullopt;
    const JointResult& out = graph_.nodes.at(argument.node).out;
    if (out.kind != JointResult::Kind::Scalar) return std::nullopt;
    if (out.dtype == types::Dtype::Float64)
      refuse("argument '" + at_ + "' is a number that is only known when the graph runs");
    return JointArgument{.kind = out.dtype == types::Dtype::Bool ? Kind::Bool : Kind::Integer,
                         .integer = out.scalar.value};
  }

  graph::Argument take(const JointArgument& argument, const c10::Type& type, std::optional<int> length) const {
    using Form = graph::Argument::Kind;
    if (argument.kind == Kind::Node && !number_of(argument)) {
      if (!graph::takes_tensor(type)) refuse_argument(argument, type);
      return {Form::Value, {}, {argument.node}};
    }
    const c10::TypePtr* const element = graph::element_type(type);
    if (!element || !graph::takes_tensor(**element)) return {Form::Constant, constant(argument, type, length), {}};
    if (argument.kind == Kind::None && type.kind() == c10::TypeKind::OptionalType) return {};
    if (argument.kind != Kind::List) refuse_argument(argument, type);
    const bool optional = (*element)->kind() == c10::TypeKind::OptionalType;
    graph::Argument list{optional ? Form::OptionalTensorList : Form::TensorList, {}, {}};
    for (const JointArgument& item : argument.items) {
      const bool none = item.kind == Kind::None && optional;
      if (item.kind != Kind::Node && !none) refuse_argument(item, **element);
      list.values.push_back(none ? graph::kNoValue : item.node);
    }
    return list;
  }

  c10::IValue constant(const JointArgument& argument, const c10::Type& type, std::optional<int> length) const {
    const c10::TypePtr* const element = graph::element_type(type);
    if (element && argument.kind == Kind::List) {
      c10::impl::GenericList list(*element);
      for (const JointArgument& item : argument.items) list.push_back(constant(item, **element, std::nullopt));
      return list;
    }
    // Schemas have dtypes, layouts and memory formats as integers.
    const bool takes_enumerator = graph::without_optional(type).kind() == c10::TypeKind::IntType;
    const std::optional<c10::IValue> plain = plain_constant(number_of(argument).value_or(argument), takes_enumerator);
    std::optional<c10::IValue> fits = plain ? graph::fitted(*plain, type, length) : std::nullopt;
    if (!fits) refuse_argument(argument, type);
    return *std::move(fits);
  }

  /// An argument as LibTorch has it, whatever its type; nullopt for one that LibTorch does not have.
  static std::optional<c10::IValue> plain_constant(const JointArgument& argument, bool takes_enumerator) {
    const auto enumerator = [&](auto value) {
      return takes_enumerator ? std::optional<c10::IValue>(static_cast<int64_t>(types::to_aten(value))) : std::nullopt;
    };
    switch (argument.kind) {
      case Kind::None:
        return c10::IValue();
      case Kind::Bool:
        return argument.integer != 0;
      case Kind::Integer:
      case Kind::Symbolic:
        return argument.integer;
      case Kind::Float:
        return argument.real;
      case Kind::Complex:
        return c10::complex<double>(argument.real, argument.imaginary);
      case Kind::String:
        return argument.text;
      case Kind::Dtype:
        return enumerator(argument.dtype);
      case Kind::Layout:
        return enumerator(argument.layout);
      case Kind::MemoryFormat:
        return enumerator(argument.memory_format);
      case Kind::Device:
        return types::to_aten(argument.device);
      default:
        return std::nullopt;
    }
  }

  const JointGraph& graph_;
  const JointNode& node_;
  const bool any_layout_;
  std::string at_;  // the name of the argument
};

}  // namespace

graph::Node bind_call(const JointGraph& graph, const JointNode& node, bool any_layout) {
  return Binder(graph, node, any_layout).bind();
}

}  // namespace plumbline::partition

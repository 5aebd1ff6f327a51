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
    std::vector<const JointArgument*> given(parameters.size(), nullptr);
    for (size_t i = 0; i < node_.args.size(); ++i) {
      if (i >= parameters.size()) refuse(std::to_string(node_.args.size()) + " arguments are too many for it");
      given[i] = &node_.args[i];
    }
    for (const auto& [name, argument] : node_.kwargs) {
      const std::optional<int> place = schema.argumentIndexWithName(name);
      if (!place || given[*place]) refuse("it takes no further argument '" + name + "'");
      given[*place] = &argument;
    }
    call.arguments.resize(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      at_ = parameters[i].name();
      if (given[i])
        call.arguments[i] = take(*given[i], *parameters[i].type());
      else if (parameters[i].default_value())
        call.arguments[i].constant = *parameters[i].default_value();
      else
        refuse("argument '" + at_ + "' is missing");
    }
    return call;
  }

 private:
  std::string op_name() const {
    const bool views = node_.op == "aten::view" && (node_.overload.empty() || node_.overload == "default");
    return views && any_layout_ ? "aten::reshape" : node_.op;
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

  graph::Argument take(const JointArgument& argument, const c10::Type& type) const {
    using Form = graph::Argument::Kind;
    if (argument.kind == Kind::Node && !number_of(argument)) {
      if (!graph::takes_tensor(type)) refuse_argument(argument, type);
      return {Form::Value, {}, {argument.node}};
    }
    const c10::TypePtr* const element = graph::element_type(type);
    if (!element || !graph::takes_tensor(**element)) return {Form::Constant, constant(argument, type), {}};
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

  c10::IValue constant(const JointArgument& given, const c10::Type& type) const {
    if (given.kind == Kind::None) {
      if (type.kind() == c10::TypeKind::OptionalType || type.kind() == c10::TypeKind::NoneType) return {};
      if (type.kind() == c10::TypeKind::TensorType) return at::Tensor();
      refuse_argument(given, type);
    }
    const JointArgument argument = number_of(given).value_or(given);
    if (const c10::TypePtr* const element = graph::element_type(type)) return list(argument, *element, type);
    const c10::Type& wanted = graph::without_optional(type);
    const bool integral = argument.kind == Kind::Integer || argument.kind == Kind::Symbolic;
    switch (wanted.kind()) {
      case c10::TypeKind::TensorType:
      case c10::TypeKind::NumberType:
        return scalar(argument, type);
      case c10::TypeKind::BoolType:
        if (argument.kind == Kind::Bool || integral) return argument.integer != 0;
        break;
      case c10::TypeKind::FloatType:
        if (argument.kind == Kind::Float) return argument.real;
        if (integral) return static_cast<double>(argument.integer);
        break;
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        if (integral || argument.kind == Kind::Bool) return argument.integer;
        if (argument.kind == Kind::Dtype) return static_cast<int64_t>(types::to_aten(argument.dtype));
        if (argument.kind == Kind::Layout) return static_cast<int64_t>(types::to_aten(argument.layout));
        if (argument.kind == Kind::MemoryFormat) return static_cast<int64_t>(types::to_aten(argument.memory_format));
        break;
      case c10::TypeKind::ScalarTypeType:
        if (argument.kind == Kind::Dtype) return static_cast<int64_t>(types::to_aten(argument.dtype));
        break;
      case c10::TypeKind::StringType:
        if (argument.kind == Kind::String) return argument.text;
        break;
      case c10::TypeKind::DeviceObjType:
        if (argument.kind == Kind::Device) return types::to_aten(argument.device);
        if (argument.kind == Kind::String) return c10::Device(argument.text);
        break;
      default:
        break;
    }
    refuse_argument(argument, type);
  }

  at::Scalar scalar(const JointArgument& argument, const c10::Type& type) const {
    if (argument.kind == Kind::Bool) return argument.integer != 0;
    if (argument.kind == Kind::Integer || argument.kind == Kind::Symbolic) return argument.integer;
    if (argument.kind == Kind::Float) return argument.real;
    if (argument.kind == Kind::Complex) return c10::complex<double>(argument.real, argument.imaginary);
    refuse_argument(argument, type);
  }

  /// Of numbers or strings; a single number stands for a list of one, as schemas of fixed length have it.
  c10::IValue list(const JointArgument& argument, const c10::TypePtr& element, const c10::Type& type) const {
    const bool single = argument.kind != Kind::List;
    if (single && (argument.kind == Kind::String || argument.kind == Kind::Slice || argument.kind == Kind::Other))
      refuse_argument(argument, type);
    c10::impl::GenericList result(element);
    if (single) result.push_back(constant(argument, *element));
    for (const JointArgument& item : argument.items) result.push_back(constant(item, *element));
    return result;
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

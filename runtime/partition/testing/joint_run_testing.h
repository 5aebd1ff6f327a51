// For tests: executes a joint graph node by node, unchanged. An independent, literal implementation that shares no code
// with the tracer or with the runner that stages use.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {

class JointRun {
 public:
  virtual ~JointRun() = default;
  JointRun(const JointGraph& graph, const std::map<std::string, at::Tensor>& constants)
      : graph_(graph), constants_(constants), values_(graph.nodes.size()) {}

  /// `inputs` are the primals, then the tangents. Returns one tensor per output, undefined for None.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    size_t input = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const JointNode& node = graph_.nodes[i];
      if (node.is_input())
        values_[i] = inputs.at(input++);
      else if (node.kind == JointKind::GetAttr)
        values_[i] = constants_.at(node.attribute);
      else if (node.kind == JointKind::GetItem)
        values_[i] = item(values_.at(node.args[0].node), node.args[1].integer);
      else
        values_[i] = call(static_cast<NodeIndex>(i));
      check(node, values_[i]);
    }
    std::vector<at::Tensor> outputs;
    for (const NodeIndex output : graph_.outputs)
      outputs.push_back(output == kNoNode ? at::Tensor() : values_.at(output).toTensor());
    return outputs;
  }

 protected:
  virtual c10::IValue call(NodeIndex index) { return call(graph_.nodes[index]); }

  const JointGraph& graph_;
  const std::map<std::string, at::Tensor>& constants_;
  std::vector<c10::IValue> values_;

 private:
  using Kind = JointArgument::Kind;

  static c10::IValue item(const c10::IValue& tuple, int64_t index) {
    return tuple.isTuple() ? tuple.toTupleRef().elements().at(index) : tuple.toListRef().at(index);
  }

  /// Throws if the value differs from its description in the trace.
  static void check(const JointNode& node, const c10::IValue& value) {
    const auto fail = [&](const char* what) {
      throw std::runtime_error(node.name + ": " + what + " is not as traced");
    };
    if (node.out.kind != JointResult::Kind::Tensor) return;
    const at::Tensor& tensor = value.toTensor();
    if (types::to_aten(node.out.dtype) != tensor.scalar_type()) fail("dtype");
    for (const auto& [traced, actual] :
         {std::pair{node.out.shape, tensor.sizes()}, {node.out.strides, tensor.strides()}}) {
      if (traced.size() != actual.size()) fail("dimensions");
      for (size_t d = 0; d < actual.size(); ++d)
        if (traced[d].value != actual[d]) fail("shape or strides");
    }
    if (node.out.bytes != tensor.numel() * static_cast<int64_t>(tensor.element_size())) fail("bytes");
  }

  c10::IValue call(const JointNode& node) {
    const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(
        node.op.c_str(), node.overload == "default" ? "" : node.overload.c_str());
    const c10::FunctionSchema& schema = op.schema();
    torch::jit::Stack stack;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& parameter = schema.arguments()[i];
      const JointArgument* given = !parameter.kwarg_only() && i < node.args.size() ? &node.args[i] : nullptr;
      for (const auto& [name, argument] : node.kwargs)
        if (name == parameter.name()) given = &argument;
      if (given)
        stack.push_back(value(*given, *parameter.type()));
      else if (parameter.default_value())
        stack.push_back(*parameter.default_value());
      else
        throw std::runtime_error(node.name + ": argument " + parameter.name() + " is missing");
    }
    op.callBoxed(&stack);
    return stack.size() == 1 ? stack[0] : c10::IValue(c10::ivalue::Tuple::create(std::move(stack)));
  }

  c10::IValue value(const JointArgument& argument, const c10::Type& type) const {
    if (type.kind() == c10::TypeKind::OptionalType) {
      if (argument.kind == Kind::None) return {};
      return value(argument, *type.castRaw<c10::OptionalType>()->getElementType());
    }
    const bool tensor = type.kind() == c10::TypeKind::TensorType;
    switch (argument.kind) {
      case Kind::None:
        return tensor ? c10::IValue(at::Tensor()) : c10::IValue();
      case Kind::Node:
        return values_.at(argument.node);
      case Kind::Bool:
        return tensor ? number(argument.integer != 0) : c10::IValue(argument.integer != 0);
      case Kind::Integer:
        if (type.kind() == c10::TypeKind::FloatType) return static_cast<double>(argument.integer);
        return tensor ? number(argument.integer) : c10::IValue(argument.integer);
      case Kind::Float:
        return tensor ? number(argument.real) : c10::IValue(argument.real);
      case Kind::Complex: {
        const c10::complex<double> complex(argument.real, argument.imaginary);
        return tensor ? number(complex) : c10::IValue(complex);
      }
      case Kind::String:
        return argument.text;
      case Kind::Device:
        return types::to_aten(argument.device);
      case Kind::Dtype:
        return static_cast<int64_t>(types::to_aten(argument.dtype));
      case Kind::Layout:
        return static_cast<int64_t>(types::to_aten(argument.layout));
      case Kind::MemoryFormat:
        return static_cast<int64_t>(types::to_aten(argument.memory_format));
      case Kind::List:
        return list(argument, type.castRaw<c10::ListType>()->getElementType());
      default:
        throw std::runtime_error("an argument that cannot be executed");
    }
  }

  static c10::IValue number(const c10::Scalar& scalar) {
    at::Tensor tensor = at::scalar_tensor(scalar, at::TensorOptions(scalar.type()));
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }

  c10::IValue list(const JointArgument& argument, const c10::TypePtr& element) const {
    c10::impl::GenericList list(element);
    for (const JointArgument& item : argument.items) list.push_back(value(item, *element));
    return list;
  }
};

}  // namespace plumbline::partition

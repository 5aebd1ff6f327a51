// The arguments of a call as a boxed kernel takes them.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/wrapped_number.h"

namespace plumbline::graph {

/// A list argument of the kind `kind`; a NumberList takes its constant elements from `constants`. `value_of(ValueId)`
/// returns a c10::IValue.
template <class ValueOf>
c10::IValue boxed_list(Argument::Kind kind, const c10::IValue& constants, const std::vector<ValueId>& values,
                       const ValueOf& value_of) {
  if (kind == Argument::Kind::NumberList) {
    c10::impl::GenericList list = constants.toList().copy();
    for (size_t k = 0; k < values.size(); ++k)
      if (values[k] != kNoValue) list.set(k, value_of(values[k]));
    return list;
  }
  const auto fill = [&](auto list, const auto& none) {
    list.reserve(values.size());
    for (const ValueId v : values) list.push_back(v == kNoValue ? none : value_of(v).toTensor());
    return c10::IValue(std::move(list));
  };
  if (kind == Argument::Kind::OptionalTensorList)
    return fill(c10::List<std::optional<at::Tensor>>(), std::optional<at::Tensor>());
  return fill(c10::List<at::Tensor>(), at::Tensor());
}

/// All arguments of `call`, which must not be a split marker. `value_of(ValueId)` returns a c10::IValue.
template <class ValueOf>
torch::jit::Stack boxed_arguments(const Node& call, const ValueOf& value_of) {
  torch::jit::Stack stack;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const auto& [kind, constant, values] = call.arguments[i];
    const c10::Type& type = *call.op->schema().arguments()[i].type();
    if (kind == Argument::Kind::Constant)
      stack.push_back(boxed_constant(constant, type));
    else if (kind == Argument::Kind::Value)
      stack.push_back(boxed_constant(value_of(values[0]), type));
    else
      stack.push_back(boxed_list(kind, constant, values, value_of));
  }
  return stack;
}

}  // namespace plumbline::graph

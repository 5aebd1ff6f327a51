// The operators that the text and the JSON form of a graph name.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>

namespace plumbline::graph {

/// Returns the operator that c10::toString() calls `name`: "aten::add.Tensor", or "aten::relu" for one without an
/// overload name. Nullopt: this LibTorch knows none.
inline std::optional<c10::OperatorHandle> operator_named(const std::string& name) {
  const size_t dot = name.find('.');
  return c10::Dispatcher::singleton().findSchema(
      {name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
}

}  // namespace plumbline::graph

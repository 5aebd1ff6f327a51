// Whether tensors given to a graph are as those with which it was captured.
#pragma once

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Whether `tensor` is defined and has the dtype and sizes of the captured `value`.
inline bool is_as_captured(const at::Tensor& tensor, const Value& value) {
  return tensor.defined() && tensor.scalar_type() == value.dtype && tensor.sizes() == value.sizes;
}

/// The first attribute that the graph uses and that holds no tensor; null if all of them hold one.
inline const Attribute* unbound_attribute(const Graph& graph) {
  for (const Attribute& attribute : graph.attributes)
    if (attribute.value != kNoValue && !attribute.tensor.defined()) return &attribute;
  return nullptr;
}

}  // namespace plumbline::graph

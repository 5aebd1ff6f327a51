// Whether tensors given to a graph are as those with which it was captured.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Whether `tensor` is defined and has the dtype and sizes of the captured `value`.
inline bool is_as_captured(const at::Tensor& tensor, const Value& value) {
  return tensor.defined() && tensor.scalar_type() == value.dtype && tensor.sizes() == value.sizes;
}

/// Why the graph cannot run with `inputs`, in one line: they are not as captured, or an attribute that it uses holds no
/// tensor. Empty if it can.
std::string why_not_runnable(const Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::graph

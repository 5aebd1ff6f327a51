// Restores the strides of eager mode in a functionalised run. Functionalisation keeps the numbers of every value, but
// not always the strides: the functional form of some in-place operators (rrelu_, for example) returns another layout.
// A later operation on such a value, a sum for example, could then round in another order than in eager mode.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/run/program.h"

namespace plumbline::partition {

/// The strides of a graph's values in eager mode.
class EagerLayouts {
 public:
  /// Runs `graph` once in eager mode, on copies of its attributes and of `inputs`, and stores the strides of all
  /// values. The CPU's default generator is left unchanged. Neither argument needs to outlive this object.
  EagerLayouts(const graph::Graph& graph, const std::vector<at::Tensor>& inputs);

  /// Call in a FunctionalRun, after `node` has run: replaces each of its results in `values` whose strides differ from
  /// those of eager mode by a copy with the eager strides. Returns an empty string, or a text that names a result that
  /// cannot be copied that way: a view, or strides with gaps or shared elements.
  std::string restore(const graph::Node& node, const graph::Frame& values) const;

 private:
  std::vector<std::vector<int64_t>> strides_;  // by value id; empty also for a value that is no strided tensor
};

}  // namespace plumbline::partition

// Functionalisation gives every value its eager numbers, but not always its eager strides: some operators that write
// have a functional form which lays its result out in its own way (that of rrelu does). What is computed from such a
// value, a sum for one, could then round otherwise than in eager mode.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/run/program.h"

namespace plumbline::partition {

/// The strides that the values of a graph have in eager mode.
class EagerLayouts {
 public:
  /// Runs `graph` once, on copies of its attributes and of `inputs`.
  EagerLayouts(const graph::Graph& graph, const std::vector<at::Tensor>& inputs);

  /// To be called in a FunctionalRun, after `node` has made the functional tensors in `values`: those that lie
  /// otherwise than in eager mode are laid out anew. Says which one cannot be; empty where all are right.
  std::string restore(const graph::Node& node, const graph::Frame& values) const;

 private:
  std::vector<std::vector<int64_t>> strides_;  // by value; empty as well where it is no dense tensor
};

}  // namespace plumbline::partition

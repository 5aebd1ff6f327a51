// HalvedNode: an autograd node that can be executed in two halves, and its contract with the cut (split/cut.h).
//
// The cut executes such a node twice: first only the edges towards inputs are valid, then only the edges towards
// parameters. The cut keeps no incoming gradient for the node, so the second execution gets undefined gradients. In a
// full backward the node is executed once with all edges.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <mutex>
#include <string>
#include <vector>

namespace plumbline::backward {

/// The handle of an autograd node: an intrusive pointer since LibTorch 2.15, a shared one before.
using NodeHandle = decltype(torch::autograd::Edge::function);

/// Derives the kind of execution from the valid edges. All edges valid: a full backward. Some edges valid: the second
/// half if a first half has run and none of its edges is valid now, otherwise a first half. (An edge to a value that
/// depends on parameters only belongs to the second half.) Throws Error if the backward runs with create_graph.
///
/// release_variables() is called after either half; while between_halves() is true, an override must keep the values
/// that the second half needs. A first half is repeated only if the graph is retained. A lock serialises the executions
/// of one node.
class HalvedNode : public torch::autograd::Node {
 public:
  using Node::Node;

 protected:
  using Gradients = torch::autograd::variable_list;

  /// True from the end of a first half to the beginning of the node's next execution.
  bool between_halves() const { return between_halves_; }

 private:
  /// Returns one slot for each edge; task_should_compute_output() tells which of them the engine requires.
  virtual Gradients full(Gradients& grads) = 0;
  /// `wanted`, indexed by edge: nonzero for the edges of this half. Returns one slot for each edge and keeps the values
  /// that second_half() needs.
  virtual Gradients first_half(Gradients& grads, const std::vector<char>& wanted) = 0;
  /// As first_half(), for the edges of the second half.
  virtual Gradients second_half(const std::vector<char>& wanted) = 0;
  /// Drops the values kept by a first half whose second half never ran.
  virtual void forget_half() = 0;
  /// The error message for a backward with create_graph.
  virtual std::string second_derivative_error() const = 0;

  Gradients apply(Gradients&& grads) final;

  std::mutex halves_;  // apart from Node::mutex_, which the halves lock to read saved values
  bool between_halves_ = false;
  std::vector<char> first_edges_;
};

}  // namespace plumbline::backward

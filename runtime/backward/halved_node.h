// HalvedNode: an autograd node that can be executed in two halves, and its contract with the cut (split/cut.h).
//
// The cut executes such a node twice, first with only the edges towards inputs valid, then with only those towards
// parameters. It stores no gradient for the node, and the second execution gets undefined gradients. In a full backward
// the node is executed once with all edges.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <mutex>
#include <string>
#include <vector>

namespace plumbline::backward {

/// The handle of an autograd node: an intrusive pointer since LibTorch 2.15, a shared one before.
using NodeHandle = decltype(torch::autograd::Edge::function);

/// Derives the kind of execution from the valid edges: all edges are a full backward; some edges are a first half,
/// unless a first half has run and none of its edges is among them: then they are the second half. (An input may depend
/// on parameters only; its gradient then belongs to the second half, like a parameter's.)
///
/// LibTorch releases the node's saved values after either half: release_variables() must keep those that the second
/// half needs (between_halves()). Unless a graph is retained there is only one first half. Executions of one node run
/// one at a time.
class HalvedNode : public torch::autograd::Node {
 public:
  using Node::Node;

 protected:
  using Gradients = torch::autograd::variable_list;

  /// True from the end of the first half to the beginning of the second.
  bool between_halves() const { return between_halves_; }

 private:
  /// Returns one slot for each edge; should_compute_output() tells which are required.
  virtual Gradients full(Gradients& grads) = 0;
  /// `wanted`: by edge. Keeps the values that second_half() needs.
  virtual Gradients first_half(Gradients& grads, const std::vector<char>& wanted) = 0;
  virtual Gradients second_half(const std::vector<char>& wanted) = 0;
  /// Drops the values kept by a first half whose second half never ran.
  virtual void forget_half() = 0;
  /// The error message for a backward with create_graph.
  virtual std::string second_derivative_error() const = 0;

  Gradients apply(Gradients&& grads) final;

  std::mutex halves_;  // Node::mutex_ protects what a node saved, and its halves lock it
  bool between_halves_ = false;
  std::vector<char> first_edges_;
};

}  // namespace plumbline::backward

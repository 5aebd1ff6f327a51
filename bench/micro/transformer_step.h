// One training step of a small transformer in two forms, called as a module and interpreted from its capture, whose
// times and instruction counts are compared. Both use the same parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/graph/run/program.h"

namespace plumbline::bench {

enum class Side { Module, Interpreter };

class SmallTransformer;

/// A language model of 4 pre-norm blocks of width 32 with 4 heads, causal attention, tied embedding and cross entropy,
/// on one row of 8 tokens. Its kernels are tiny, so that the overhead of each call shows. For use by one thread at a
/// time.
class TransformerStep {
 public:
  /// Builds and captures the model, and runs both sides once. Aborts unless they give the same loss and gradients, bit
  /// for bit.
  TransformerStep();
  ~TransformerStep();

  /// Drops all gradients and computes them anew. Returns the detached loss.
  at::Tensor forward_backward(Side side);
  /// Computes the loss alone, without autograd, and returns it.
  at::Tensor forward(Side side);

  /// The number of nodes of the captured graph.
  size_t node_count() const { return nodes_; }

 private:
  at::Tensor loss(Side side);

  std::shared_ptr<SmallTransformer> module_;
  std::vector<at::Tensor> parameters_, inputs_, outputs_;
  size_t nodes_ = 0;
  std::unique_ptr<graph::Frame> interpreter_;
};

}  // namespace plumbline::bench

// One training step of a small transformer, called as a module and interpreted from its capture: the two sides whose
// times and instructions are compared. Both use the same parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/graph/run/program.h"

namespace plumbline::bench {

enum class Side { Module, Interpreter };

class SmallTransformer;

/// A language model of 4 pre-norm blocks of width 32 with 4 heads, causal attention, tied embedding and cross entropy,
/// on one row of 8 tokens: its kernels are as small as possible, so that the overhead of each call shows.
class TransformerStep {
 public:
  /// Checks that both sides give the same loss and gradients, bit for bit.
  TransformerStep();
  ~TransformerStep();

  /// Recomputes all gradients. Returns the loss.
  at::Tensor forward_backward(Side side);
  /// Runs under no_grad.
  at::Tensor forward(Side side);

  size_t node_count() const { return nodes_; }

 private:
  at::Tensor loss(Side side);

  std::shared_ptr<SmallTransformer> module_;
  std::vector<at::Tensor> parameters_, inputs_, outputs_;
  size_t nodes_ = 0;
  std::unique_ptr<graph::Frame> interpreter_;
};

}  // namespace plumbline::bench

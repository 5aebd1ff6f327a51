// Floating-point operations of a graph's nodes: estimated from the captured sizes, or counted on the calls that run.
// A multiplication with its addition counts two (flop_formulas.h has the conventions).
#pragma once

#include <vector>

#include "runtime/capture/interpose.h"
#include "runtime/graph/graph.h"

namespace plumbline::split {

/// The forward of one node. Calls of matrix kind by their formula; what makes views, looks up embeddings or reads no
/// tensor, nothing; of a cond, the costlier branch; anything else one for each element of its results. Looks at
/// captured sizes only, so tensors may be on the meta device or missing.
double estimated_flops(const graph::Graph& graph, const graph::Node& node);

/// Its backward: as much again for each factor of a matrix product that requires a gradient (so twice the forward where
/// both do), and as much again for any other call whose result requires one; nothing where none does.
double estimated_backward_flops(const graph::Graph& graph, const graph::Node& node);

/// Both together, by node.
std::vector<double> estimated_flops(const graph::Graph& graph);

/// Adds up the operations of the calls of matrix kind that reach the kernels, forward and backward; passes them on.
/// Elementwise calls count nothing here.
class FlopCounter : public capture::Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  double flops() const { return flops_; }

 private:
  double flops_ = 0;
};

/// What a FlopCounter counts of each node, run by itself on the tensors that it meets when `graph` runs on `inputs`:
/// forward, and backward from gradients of ones. Inputs, parameters, buffers and the default random generator are
/// afterwards as they were. Tensors may be on the meta device.
/// Throws InputError as for_each_node_alone() does, and for tensors of an accelerator, whose backward runs on a thread
/// that no interposer sees.
std::vector<double> measure_flops(const graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::split

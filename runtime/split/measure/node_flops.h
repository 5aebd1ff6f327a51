// Counts the floating-point operations of a graph's nodes by running them.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// Returns the count of a flops::FlopCounter for each node, indexed as graph.nodes: forward and backward together, the
/// latter from gradients of ones. Each node runs separately (node_alone.h) on the tensors that it reads when `graph`
/// runs on `inputs`. Afterwards inputs, parameters, buffers and the default random generator are restored. Tensors may
/// be on the meta device. Throws InputError as for_each_node_alone() does, and for tensors of an accelerator, whose
/// backward runs on a thread without the interposer.
std::vector<double> measure_flops(const graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::split

// Counts the floating-point operations of a graph's nodes from the calls that run.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// The count of a flops::FlopCounter for each node, run by itself on the tensors that it gets when `graph` runs on
/// `inputs`: forward, and backward from gradients of ones. Afterwards inputs, parameters, buffers and the default
/// random generator are restored. Tensors may be on the meta device. Throws InputError as for_each_node_alone() does,
/// and for tensors of an accelerator, whose backward runs on a thread that no interposer sees.
std::vector<double> measure_flops(const graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::split

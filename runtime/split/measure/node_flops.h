// Floating-point operations of a graph's nodes, counted on the calls that run.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// What a flops::FlopCounter counts of each node, run by itself on the tensors that it meets when `graph` runs on
/// `inputs`: forward, and backward from gradients of ones. Inputs, parameters, buffers and the default random generator
/// are afterwards as they were. Tensors may be on the meta device. Throws InputError as for_each_node_alone() does, and
/// for tensors of an accelerator, whose backward runs on a thread that no interposer sees.
std::vector<double> measure_flops(const graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::split

// Moves a graph that was captured on the host, or without memory, to another device.
#pragma once

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Moves the constants of `graph` and of its branches to `device`. Calls that create tensors (zeros, arange, ...) then
/// create them there, calls that move a tensor to the host or to meta move it there, and autocast regions apply there.
/// Under autocast a device computes other operators in float32 than the CPU does: types of values may then differ.
/// The caller binds parameters and buffers. A call with a tensor argument and no device keeps following that argument.
/// Throws InputError for a call that reads or sets the host's random state.
void move_to(Graph& graph, c10::Device device);

/// The tensors as they are, or copies on the host of those that are not; leaves that require gradients stay such.
std::vector<at::Tensor> on_host(const std::vector<at::Tensor>& tensors);

}  // namespace plumbline::graph

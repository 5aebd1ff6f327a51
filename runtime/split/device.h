// Moving a graph to another device.
#pragma once

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// What becomes of attributes on the meta device, which have no elements to move.
enum class MetaTensors { Keep, Zeros };

/// Moves the bound tensors of `graph` and of its branches to `device`, and lets every call that names a device name
/// this one (factories such as aten::zeros, aten::to), as PyTorch's build_stage does. Parameters stay leaves that
/// require gradients; what is one tensor, or one memory, under several names stays so, but is no longer that of other
/// graphs. Elsewhere than on the CPU no call pins memory. An autocast region for the CPU becomes one for a device that
/// computes (not meta); regions for other devices stay, since on the device of the capture they may have changed
/// nothing.
void move_to_device(graph::Graph& graph, c10::Device device, MetaTensors meta = MetaTensors::Keep);

}  // namespace plumbline::split

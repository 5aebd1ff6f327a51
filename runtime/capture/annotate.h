// annotate(): finds out by a run what the source of a graph does not say of its values.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::capture {

/// Runs `graph` once on `inputs`, with gradients enabled, and fills in dtype, sizes, requires_grad, kind and storage of
/// every value (those inside the branches of a cond stay as they are). A value that an in-place call gives a gradient
/// later on requires one. Afterwards buffers, parameters, constants, inputs and the default generator are as before.
///
/// `inputs` are in the order of graph.inputs; InputError when there are more or fewer. What a kernel throws comes as
/// Error, with the node. Takes a turn at the random generator, so it must not be called within one.
void annotate(graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::capture

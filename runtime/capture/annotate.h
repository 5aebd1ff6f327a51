// annotate(): runs a graph to determine facts about its values that the graph's source does not record.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::capture {

/// Runs `graph` once on `inputs`, with gradients enabled, and fills in dtype, sizes, requires_grad, kind and storage of
/// every value (those inside the branches of a cond are unchanged). A value to which a later in-place call gives a
/// gradient requires one. Afterwards buffers, parameters, constants, inputs and the default generator are restored.
///
/// `inputs` are in the order of graph.inputs; throws InputError when their number differs. An exception of a kernel
/// becomes Error, with the node. Takes a turn at the random generator, so it must not be called within one.
void annotate(graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::capture

// annotate(): runs a graph to determine facts about its values that the graph's source does not record.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::capture {

/// Runs `graph` once on `inputs`, with gradients enabled, and sets dtype, sizes, requires_grad, kind and storage of
/// every value (values inside the branches of a cond are unchanged). requires_grad is also set if a later in-place call
/// gives the value a gradient. Afterwards buffers, parameters, constants, inputs and the default generator are
/// restored, also after an exception.
///
/// `inputs` are in the order of graph.inputs; every used attribute must hold a tensor. Throws InputError if the number
/// of inputs differs, and Error with the node's text if a kernel throws. Not for use in a RandomTurn (random_turn.h).
void annotate(graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::capture

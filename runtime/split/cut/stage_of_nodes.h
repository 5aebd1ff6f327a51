// Decides where to cut: from markers, split points and a policy to the stage of each node.
#pragma once

#include <vector>

#include "runtime/split/cut/split_options.h"

namespace plumbline::split {

/// The stage of each node, from 0 in program order; a marker has the stage of the call before it. No stage is empty.
/// Throws InputError as split() does.
std::vector<int> stage_of_nodes(const graph::Graph& graph, const SplitOptions& options);

}  // namespace plumbline::split

// Assigns each node to a stage, from markers, split points and a policy.
#pragma once

#include <vector>

#include "runtime/split/cut/split_options.h"

namespace plumbline::split {

struct StageOfNodes {
  /// Indexed as graph.nodes, from 0 in program order; a marker has the stage of the call before it.
  std::vector<int> stages;
  /// Whether forward returned before the last split point (SplitOptions::exits_early): it did not enter the module of a
  /// point, or called nothing after one.
  bool ends_early = false;
};

/// Assigns the nodes of `graph`. No stage is empty: cuts without a call between them merge, and a cut before the first
/// or after the last call has no effect. Throws InputError for points and a policy together, a module that was never
/// entered (unless SplitOptions::exits_early permits it), and a node index of the policy that is out of range.
StageOfNodes stage_of_nodes(const graph::Graph& graph, const SplitOptions& options);

}  // namespace plumbline::split

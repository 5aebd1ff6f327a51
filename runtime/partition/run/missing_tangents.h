// A backward in which some outputs have no gradient.
//
// A joint graph has a tangent for each output that is differentiable. Where the loss does not depend on one of them,
// autograd passes nothing back through it, and what nothing flows into does not run. Zeros in its place would cost
// those calls, and change bits: -0.0 + 0.0 is 0.0, and 0 * inf is NaN.
#pragma once

#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Rewrites `graph` as if the tangents `missing` (by position among the tangents) were never given: a sum of something
/// and nothing becomes the something, gradients that come from nothing only become kNoNode, and where another call
/// takes something and nothing, the nothing becomes zeros (a tangent stays an input there, for which the caller gives
/// zeros). Indices of nodes stay as they are; calls that nobody needs any more stay too.
void drop_tangents(JointGraph& graph, const std::vector<char>& missing);

/// The calls of `part` that its outputs need, given what `graph` says now.
std::vector<NodeIndex> live_ops(const JointGraph& graph, const std::vector<NodeIndex>& ops,
                                const std::vector<NodeIndex>& outputs);

}  // namespace plumbline::partition

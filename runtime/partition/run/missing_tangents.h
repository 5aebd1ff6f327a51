// Rewrites a backward in which some outputs have no gradient.
//
// A joint graph has a tangent for each differentiable output. If the loss does not depend on an output, autograd passes
// no gradient back through that output, and calls that read only such missing gradients do not run. Zeros in place of
// the missing tangent would run those calls and change bits: -0.0 + 0.0 is 0.0, and 0 * inf is NaN.
#pragma once

#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Rewrites `graph` for a backward without the tangents whose flag in `missing` (one for each tangent, in graph order)
/// is set. A sum of a present and a missing value becomes the present value. A gradient computed from missing values
/// only becomes kNoNode. For any other call that reads present and missing values, the missing ones become calls of
/// aten::zeros; a missing tangent itself stays an input, for which the caller must pass zeros. Node indices do not
/// change, and dead calls stay.
void drop_tangents(JointGraph& graph, const std::vector<char>& missing);

/// Returns those of `ops` (in topological order) that `outputs` need in `graph`, in the same order. kNoNode among the
/// outputs is ignored.
std::vector<NodeIndex> live_ops(const JointGraph& graph, const std::vector<NodeIndex>& ops,
                                const std::vector<NodeIndex>& outputs);

}  // namespace plumbline::partition

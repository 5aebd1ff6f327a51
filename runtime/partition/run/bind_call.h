// Binds a call of a joint graph to LibTorch's operator: the inverse of trace/joint_argument.h.
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Returns `node`, of kind Call, with all arguments of the operator's schema, defaults included, and without results.
/// Its value ids are indices of nodes of `graph`. Symbolic integers and bools become their hints.
///
/// A graph is traced for one memory layout. With `any_layout`, tensor arguments may have another layout (the expanded
/// gradient of a sum, for example, and values computed from it): aten::view is then bound as aten::reshape, as in
/// autograd's formulas. On the traced layout, reshape makes the same view.
///
/// Throws InputError naming the node if the operator does not exist, or if an argument is missing, unknown to the
/// schema, of a wrong type, a symbolic float, or an object that only Python has.
graph::Node bind_call(const JointGraph& graph, const JointNode& node, bool any_layout = false);

}  // namespace plumbline::partition

// A call of a joint graph, bound to LibTorch's operator: the way back of trace/joint_argument.h.
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// A node of kind Call with all arguments of its operator's schema, defaults filled in, and no results; its values are
/// numbered as the nodes of `graph`. Symbolic numbers, and nodes that are numbers, become their hints.
///
/// A graph is traced for one layout. `any_layout`: the arguments may come in another one (the expanded gradient of a
/// sum, and what is computed from it). There aten::view is bound as aten::reshape, as autograd's formulas have it; on
/// the traced layout reshape is the view.
///
/// Throws InputError naming the node: an operator that does not exist, an argument that its schema does not have or
/// take, or one that only Python understands.
graph::Node bind_call(const JointGraph& graph, const JointNode& node, bool any_layout = false);

}  // namespace plumbline::partition

// Decompositions: an optional pass that writes the larger operators of a joint graph as the smaller ones of PyTorch's
// core operator set, so that a partitioner may save or recompute their parts.
//
// Each operator becomes the calls of a formula written with ATen (decomposition_formulas.h), which is run once on
// tensors without memory and recorded like a model. What has no formula stays as it is, under its name. Half precision
// is computed in float32 and rounded at the end, as the kernels do. Views, moves and selections keep every bit; the
// arithmetic rounds in another order than the kernel it replaces, each operation once, so a float64 result lies within
// a small multiple of 2^-53 of the kernel's, in units of the sum of the absolute terms that it adds up.
//
// After the tables of torch/_decomp (PyTorch).
#pragma once

#include <set>
#include <string>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// The operators that have a decomposition, by name without overload: "aten::native_layer_norm".
const std::set<std::string>& decomposable();

/// `graph` with the calls of `ops` taken apart. Marks, checkpoint tags and the place in the order are those of the call
/// taken apart; new nodes are named after their operators, all others keep name and order. A call is left whole where
/// its parts would give another dtype, shape or stride. Dead calls are removed.
/// Throws InputError naming the node for a call that cannot be bound to an operator (bind_call.h).
JointGraph decompose(const JointGraph& graph, const std::set<std::string>& ops = decomposable());

}  // namespace plumbline::partition

// Decompositions: an optional pass that replaces larger operators of a joint graph by smaller ones of PyTorch's core
// operator set, so that a partitioner may save or recompute their parts.
//
// Each call becomes the calls of a formula written with ATen (decomposition_formulas.h), which runs once on tensors
// without memory and is recorded like a model. Calls without a formula do not change. Half precision is computed in
// float32 and rounded at the end, as in the kernels. Views, moves and selections keep every bit. Arithmetic rounds in
// another order than the kernel that it replaces, each operation once: a float64 result differs from the kernel's by at
// most a small multiple of 2^-53 times the sum of the absolute values of its terms.
//
// After the tables of torch/_decomp (PyTorch).
#pragma once

#include <set>
#include <string>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Returns the operators that have a decomposition, by name without overload: "aten::native_layer_norm".
const std::set<std::string>& decomposable();

/// Returns `graph` with the calls of `ops` decomposed. The new nodes take the place, mark and checkpoint tags of the
/// call and are named after their operators; all other nodes keep name and order. A call stays if its decomposition
/// would have another dtype, shape or stride. Dead calls are removed, and FLOPs are counted again (joint_flops.h).
/// Throws InputError naming the node if a call of `ops` cannot be bound to its operator (bind_call.h).
JointGraph decompose(const JointGraph& graph, const std::set<std::string>& ops = decomposable());

}  // namespace plumbline::partition

// Orders the calls of a divided graph. The order determines how long recomputed values live. After
// `reordering_to_mimic_autograd_engine` and `raise_getitems` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Whether the backward is reordered, and how early effects are handled: calls with effects, and random draws that only
/// the backward makes, that precede the first call that reads a tangent.
enum class Reordering : uint8_t {
  None,         ///< calls keep their order
  AsPyTorch,    ///< early effects run directly before the first later call that needs them, or are dropped; with
                ///< ReorderBy::Graph, copies (aten::copy_) keep their place
  KeepsEffects  ///< all early effects run, in graph order, and no call moves behind a writing call that it precedes
};

/// Reorders backward.ops as autograd's engine would run them: from the first call that reads a tangent on, calls keep
/// their graph order, and the earlier (recomputed) calls that a call needs run directly before it. Earlier calls that
/// none needs are dropped. If no call reads a tangent, nothing changes, except that AsPyTorch still reorders if a
/// tangent is itself an output. O(n log n).
void reorder_as_autograd(const JointGraph& graph, const JointEdges& edges, Subgraph& backward, ReorderBy by,
                         Reordering reordering = Reordering::AsPyTorch);

/// Moves every getitem directly behind its call, or to the front if the call is an input of `part`, and keeps the order
/// of getitems of one call. Unused results of the call are then freed early.
void raise_getitems(const JointGraph& graph, const JointEdges& edges, Subgraph& part);

/// Reorders the backward by Policy::order.by and `reordering`, then raises the getitems of both halves if Policy::order
/// asks for that. `edges` are those of partition.graph.
void order_calls(Partition& partition, const JointEdges& edges, const Policy& policy, Reordering reordering);

}  // namespace plumbline::partition

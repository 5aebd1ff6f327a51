// The order in which the calls of a divided graph run, which decides how long recomputed values live. After
// `reordering_to_mimic_autograd_engine` of PyTorch's partitioners.py and `raise_getitems` beside it.
#pragma once

#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Whether the backward is reordered, and what becomes of calls with effects, and of draws that the backward alone
/// makes, where they stand before the first call that reads a tangent.
enum class Reordering : uint8_t {
  None,
  AsPyTorch,    ///< but for copies (not by depth) they run where their results are first needed, or not at all
  KeepsEffects  ///< all of them run, in graph order, and nothing that stands before a call that writes comes behind it
};

/// Runs the backward in the order of autograd's engine: beginning at the first call that reads a tangent, each call of
/// the graph's order, and what it needs of earlier ones (recomputed calls) right before it. Without a call that reads a
/// tangent nothing changes. O(n log n).
void reorder_as_autograd(const JointGraph& graph, const JointEdges& edges, Subgraph& backward, ReorderBy by,
                         Reordering reordering = Reordering::AsPyTorch);

/// Every getitem right after the call that it takes from, in their order: the other results of the call are freed
/// early.
void raise_getitems(const JointGraph& graph, const JointEdges& edges, Subgraph& part);

/// The order of both halves under Policy::order: the backward is reordered, then getitems are raised.
void order_calls(Partition& partition, const JointEdges& edges, const Policy& policy, Reordering reordering);

}  // namespace plumbline::partition

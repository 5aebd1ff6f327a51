// The order in which the calls of a divided graph run, which decides how long recomputed values live. After
// `reordering_to_mimic_autograd_engine` of the functorch partitioners and `raise_getitems` beside it.
#pragma once

#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Which calls come first where several could.
enum class ReorderBy : uint8_t {
  Graph,  ///< graph order among the calls that one step of the backward needs
  Depth   ///< the seed: first the argument that is the longest way from the inputs
};

/// Whether the backward is reordered, and what becomes of calls with effects, and of draws that the backward alone
/// makes, where they stand before the first call that reads a tangent.
enum class Reordering : uint8_t {
  None,
  AsPyTorch,    ///< but for copies (not in the seed) they run where their results are first needed, or not at all
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

/// The order of both halves under a policy: the backward is reordered, then, in newer versions than the seed
/// (policy.always_reorder), getitems are raised.
void order_calls(Partition& partition, const JointEdges& edges, const Policy& policy, Reordering reordering);

}  // namespace plumbline::partition

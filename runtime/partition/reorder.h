// Orders the calls in the two halves of a partitioned graph. The order determines how long recomputed values live.
// After `reordering_to_mimic_autograd_engine` and `raise_getitems` of PyTorch's partitioners.py.
//
// An early call is a call of the backward that comes, in graph order, before the first one that reads a tangent; most
// early calls are recomputed ones of the forward. An early effect is an early call that must run in the backward even
// if its result is unused: it has an effect, or it is a random draw that only the backward makes (calls_that_must_run()
// of effects.h).
#pragma once

#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Whether the backward is reordered, and how early effects are treated.
enum class Reordering : uint8_t {
  None,  ///< calls keep their order
  /// Early effects are treated as other early calls: each runs directly before the first call that needs it, or is
  /// dropped. With ReorderBy::Graph, early calls of aten::copy_ are not dropped and stay before all later calls.
  AsPyTorch,
  /// All early effects run, in graph order, and no call moves behind a writing call that it precedes.
  KeepsEffects
};

/// Reorders backward.ops as autograd's engine would run them. From the first call that reads a tangent on, calls keep
/// their graph order. Of the early calls, those that a call needs and that have not run yet run directly before it;
/// `by` orders them among themselves: in graph order, or depth first, beginning with the argument with the longest path
/// from the inputs. Early calls that no call needs are dropped. `reordering` says what differs for early effects. If no
/// call reads a tangent, nothing changes, except that AsPyTorch reorders if a tangent is itself an output. `edges` are
/// those of `graph`. O(n log n) for n calls.
void reorder_as_autograd(const JointGraph& graph, const JointEdges& edges, Subgraph& backward, ReorderBy by,
                         Reordering reordering = Reordering::AsPyTorch);

/// Moves every getitem directly behind its call, or to the front if the call is an input of `part`, and keeps the order
/// of getitems of one call. Unused results of the call are then freed early. `edges` are those of `graph`.
void raise_getitems(const JointGraph& graph, const JointEdges& edges, Subgraph& part);

/// Reorders the backward by Policy::order.by and `reordering`, then raises the getitems of both halves if Policy::order
/// asks for that. `edges` are those of partition.graph.
void order_calls(Partition& partition, const JointEdges& edges, const Policy& policy, Reordering reordering);

}  // namespace plumbline::partition

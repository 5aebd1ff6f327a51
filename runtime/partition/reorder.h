// The order in which the calls of a divided graph run, which determines how long recomputed values live. After
// `reordering_to_mimic_autograd_engine` and `raise_getitems` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Whether the backward is reordered, and what happens to calls with effects, and to random draws made only by the
/// backward, that precede the first call that reads a tangent.
enum class Reordering : uint8_t {
  None,
  AsPyTorch,    ///< except copies (not by depth), they run where their results are first needed, or not at all
  KeepsEffects  ///< all of them run, in graph order; a call that precedes a writing call stays ahead of it
};

/// Runs the backward in the order of autograd's engine: from the first call that reads a tangent on, calls keep their
/// graph order, and each is directly preceded by the earlier (recomputed) calls that it needs. Changes nothing if no
/// call reads a tangent. O(n log n).
void reorder_as_autograd(const JointGraph& graph, const JointEdges& edges, Subgraph& backward, ReorderBy by,
                         Reordering reordering = Reordering::AsPyTorch);

/// Moves every getitem directly behind the call it takes from, preserving their order, so that the call's other results
/// are freed early.
void raise_getitems(const JointGraph& graph, const JointEdges& edges, Subgraph& part);

/// Orders both halves by Policy::order: reorders the backward, then raises getitems.
void order_calls(Partition& partition, const JointEdges& edges, const Policy& policy, Reordering reordering);

}  // namespace plumbline::partition

// The half of a partition in which a node runs regardless of the saved values, and the nodes that may run only once:
// rules of the modes that PyTorch lacks (bytes, and budgets by the peak). PyTorch's modes consider only the nodes that
// the forward's outputs or the tangents reach.
#pragma once

#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {

/// Every vector is indexed by NodeIndex.
struct Halves {
  /// The forward runs the node: the forward's outputs need it, a call of the forward that must run without users needs
  /// it, or the backward uses a node that must be in the forward and that is or needs this node.
  std::vector<char> in_forward;
  /// Only the backward can run the node: it needs a tangent, or a random draw or effect of the model's backward. The
  /// node is never saved: saving it would move the draw into the forward, ahead of draws that preceded it.
  std::vector<char> only_backward;
  /// The backward runs the node even if its result is unused.
  std::vector<char> stays_in_backward;
};
/// Computes the flags in a few walks over the graph.
Halves halves_of(const CutInput& input);

/// Whether the node must not run in both halves: it is tagged MUST_SAVE, must be in the forward, or has effects. (A
/// wait for a collective may be repeated.)
bool runs_once(const JointNode& node);

}  // namespace plumbline::partition

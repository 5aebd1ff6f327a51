// Which half of a partition a node runs in regardless of the saved values, and which nodes may run only once: the rules
// of our own modes (bytes, and budgets by the peak). PyTorch's modes consider only what the forward's outputs and the
// tangents reach.
#pragma once

#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {

/// By node.
struct Halves {
  /// The forward makes it: its outputs need it, a call that must run there without users needs it, or the backward uses
  /// it and it is bound to the forward.
  std::vector<char> in_forward;
  /// Only the backward can make it: it needs a tangent, or a random draw or effect of the model's backward. It is never
  /// saved: that would move the draw into the forward, ahead of draws that it followed.
  std::vector<char> only_backward;
  /// The backward runs it even if its result is unused.
  std::vector<char> stays_in_backward;
};
Halves halves_of(const CutInput& input);

/// Whether the node must not run in both halves: it is tagged MUST_SAVE, bound to the forward, or a call with effects.
/// (Waiting for a collective may be repeated.)
bool runs_once(const JointNode& node);

}  // namespace plumbline::partition

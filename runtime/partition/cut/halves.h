// Which half of a partition a node runs in whatever is saved, and what may run only once: the rules of our own modes
// (bytes, and budgets by the peak). PyTorch's know only what the forward's outputs and the tangents reach.
#pragma once

#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {

/// By node.
struct Halves {
  /// The forward makes it: its outputs need it, or what must run there though nobody uses it, or what is bound to it
  /// and used by the backward.
  std::vector<char> in_forward;
  /// Only the backward can make it: it needs a tangent, or what the model drew or did in its backward. So it is never
  /// saved: a draw would move into the forward, before draws that it came after.
  std::vector<char> only_backward;
  /// The backward makes it though nobody uses it.
  std::vector<char> stays_in_backward;
};
Halves halves_of(const CutInput& input);

/// May not run in both halves: tagged MUST_SAVE, bound to the forward, or a call with effects. (Waiting for a
/// collective may be repeated.)
bool runs_once(const JointNode& node);

}  // namespace plumbline::partition

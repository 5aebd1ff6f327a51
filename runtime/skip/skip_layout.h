// SkipLayout: the partitions of a sequence between which skips go, derived from the modules' declarations alone.
//
// After inspect_skip_layout() of torchgpipe (skip/layout.py). There the layout decides which tensors are copied; here
// split() finds the same edges in a captured graph, and the layout serves to predict or check them.
#pragma once

#include <vector>

#include "runtime/skip/skip_tracker.h"

namespace torch::nn {
class Module;
}

namespace plumbline::skip {

/// A skip from partition `from`, which stashes the tensor, to partition `to`, which pops it; the two may be equal.
struct SkipRoute {
  int from = 0;
  int to = 0;
  SkipKey key;
  bool operator==(const SkipRoute&) const = default;
};

class SkipLayout {
 public:
  /// Keeps `routes` sorted by (to, from, key).
  explicit SkipLayout(std::vector<SkipRoute> routes);

  const std::vector<SkipRoute>& routes() const { return routes_; }
  /// Returns the skips that come to `partition` from other partitions, sorted by (from, key).
  std::vector<SkipRoute> copies_to(int partition) const;
  /// Whether the skip goes from one partition to another; false for an unknown key.
  bool requires_copy(const SkipKey& key) const;

 private:
  std::vector<SkipRoute> routes_;
};

/// Derives the layout of `sequence`, which must call its children one after the other; the first `balance[0]` children
/// are partition 0, and so on. Throws InputError as verify_skippables() does, for a count below 1, and if the counts do
/// not sum to the number of children.
SkipLayout inspect_skip_layout(const torch::nn::Module& sequence, const std::vector<int>& balance);

}  // namespace plumbline::skip

// SkipLayout: between which partitions of a sequence the skips go, derived from the declarations alone.
//
// After inspect_skip_layout() of torchgpipe (skip/layout.py). There it decides which tensors are copied; here split()
// finds the same edges in a captured graph, and this predicts or confirms them.
#pragma once

#include <vector>

#include "runtime/skip/skip_tracker.h"

namespace torch::nn {
class Module;
}

namespace plumbline::skip {

/// A skip from the partition that stashes it to the one that pops it, which may be the same.
struct SkipRoute {
  int from = 0;
  int to = 0;
  SkipKey key;
  bool operator==(const SkipRoute&) const = default;
};

class SkipLayout {
 public:
  /// Sorted by (to, from, key).
  explicit SkipLayout(std::vector<SkipRoute> routes);

  const std::vector<SkipRoute>& routes() const { return routes_; }
  /// The skips that come to `partition` from others, sorted by (from, key).
  std::vector<SkipRoute> copies_to(int partition) const;
  /// Whether the skip goes from one partition to another; false for an unknown one.
  bool requires_copy(const SkipKey& key) const;

 private:
  std::vector<SkipRoute> routes_;
};

/// `sequence` calls its children one after the other; the first `balance[0]` of them are partition 0, and so on. Throws
/// InputError as verify_skippables() does, for a count below 1, and when the counts do not sum to the number of
/// children.
SkipLayout inspect_skip_layout(const torch::nn::Module& sequence, const std::vector<int>& balance);

}  // namespace plumbline::skip

// The second half of a split backward: from the seeds of a cut, through the nodes that only parameters need, into the
// .grad of every leaf.
#pragma once

#include <vector>

#include "runtime/backward/roots.h"
#include "runtime/backward/split/cut.h"

namespace plumbline::backward {

/// Seeds whose successors overlap. One part is executed at once, so that sums have the full backward's order; parts are
/// executed one after another, so that gradients are freed as soon as possible.
struct WeightPart {
  std::vector<Seed> seeds;  ///< roots first, then in the order of execution
  /// One seed, no successor with two incoming edges, all nodes on the CPU: usually executed without autograd's engine.
  bool is_tree = false;
};

/// Groups the nodes of P (cut.h) into parts.
class WeightParts {
 public:
  /// `walk` must be the walk of the whole graph before the cut.
  explicit WeightParts(const GraphWalk& walk);

  /// Divides the seeds into parts: `roots` (the roots in P, made by seed_at()) and `frontier` (from Cut::turn()).
  /// `walk` is the constructor's. Call once.
  std::vector<WeightPart> divide(std::vector<Seed> roots, std::vector<Seed> frontier, const GraphWalk& walk);

 private:
  int find(int index);
  void unite(int a, int b) { parent_[find(a)] = find(b); }

  std::vector<int> parent_;      // by index in the walk: a union-find forest
  std::vector<char> is_shared_;  // by index in the walk: two edges lead to the node, or it is not on the CPU
  std::vector<char> has_parent_;
};

/// Returns the seed of a root in P: `edge` is its gradient edge, `grad` its gradient.
Seed seed_at(const torch::autograd::Edge& edge, at::Tensor grad);

/// Executes one part and drops its gradients. With `retain`, autograd's saved values are kept.
void run(WeightPart& part, bool retain);

}  // namespace plumbline::backward

// The second half: from the seeds of a cut, through the nodes that only parameters need, into the .grad of every leaf.
#pragma once

#include <vector>

#include "runtime/backward/roots.h"
#include "runtime/backward/split/cut.h"

namespace plumbline::backward {

/// Seeds whose successors overlap: executed together, so that sums come out in the full backward's order; separately
/// from others, so that their gradients are freed as soon as possible.
struct WeightPart {
  std::vector<Seed> seeds;  ///< roots first, then in the order of execution
  /// One seed, no successor with two incoming edges, everything on the CPU: it needs no engine.
  bool is_tree = false;
};

/// Groups the nodes of P into parts.
class WeightParts {
 public:
  /// `walk` is that of the whole unchanged graph; it is not needed afterwards.
  explicit WeightParts(const GraphWalk& walk);

  /// Divides the roots in P and the seeds of the frontier.
  std::vector<WeightPart> divide(std::vector<Seed> roots, std::vector<Seed> frontier, const GraphWalk& walk);

 private:
  int find(int index);
  void unite(int a, int b) { parent_[find(a)] = find(b); }

  std::vector<int> parent_;      // by index in the walk: a union-find forest
  std::vector<char> is_shared_;  // two edges lead to it, or it is not on the CPU
  std::vector<char> has_parent_;
};

/// A root in P as a seed.
Seed seed_at(const torch::autograd::Edge& edge, at::Tensor grad);

/// Executes one part and drops its gradients. `retain`: keeps autograd's saved values.
void run(WeightPart& part, bool retain);

}  // namespace plumbline::backward

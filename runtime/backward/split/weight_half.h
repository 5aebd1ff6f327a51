// The second half: from the seeds of a cut, through what only parameters need, into the .grad of every leaf.
#pragma once

#include <vector>

#include "runtime/backward/roots.h"
#include "runtime/backward/split/cut.h"

namespace plumbline::backward {

/// Seeds that share something behind them: executed together, so that what adds up there adds up in the full backward's
/// order; apart from others, so that their gradients are freed as soon as possible.
struct WeightPart {
  std::vector<Seed> seeds;  ///< roots first, then in the order of execution
  /// One seed, nothing behind it that two edges lead to, all of it on the CPU: it needs no engine.
  bool is_tree = false;
};

/// Which nodes of P belong together.
class WeightParts {
 public:
  /// `walk` is that of the whole graph; it must be as it was walked, and is not needed afterwards.
  explicit WeightParts(const GraphWalk& walk);

  /// Divides the roots that lie in P and the seeds of the frontier.
  std::vector<WeightPart> divide(std::vector<Seed> roots, std::vector<Seed> frontier, const GraphWalk& walk);

 private:
  int find(int index);
  void unite(int a, int b) { parent_[find(a)] = find(b); }

  std::vector<int> parent_;      // by index in the walk: a forest
  std::vector<char> is_shared_;  // two edges lead to it, or it is not on the CPU
  std::vector<char> has_parent_;
};

/// A root among the parameters as a seed.
Seed seed_at(const torch::autograd::Edge& edge, at::Tensor grad);

/// Executes one part and drops its gradients. `retain`: what autograd saved stays.
void run(WeightPart& part, bool retain);

}  // namespace plumbline::backward

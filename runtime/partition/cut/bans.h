// Which nodes a minimum cut may not recompute: the bans of `solve_min_cut` of PyTorch's partitioners.py.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/partition/cut/min_cut.h"

namespace plumbline::partition {

/// Why a node may not be recomputed.
enum class Ban : uint8_t {
  None,
  Primal,
  ForwardSeed,
  MustSave,
  NotInAllowlist,
  Random,
  ComputeIntensive,
  MaterializedBackward,
  TooFar,
  Reduction,
  UsedFarApart,
  LongFusibleChain
};

/// For example "it is a random operation"; empty for None.
std::string_view describe(Ban ban);

/// By node; linear in the graph, except for the heap of the ban on long chains.
std::vector<Ban> banned_from_recomputation(const CutInput& input, const CutRules& rules,
                                           const std::vector<char>& dont_ban);

/// Whether a cut may go through this node; not for symbolic scalars.
inline bool can_be_saved(const CutInput& input, NodeIndex node) {
  const NodeFacts& facts = input.ops.facts[node];
  return facts.tensor && !input.policy.overwritten(facts) && !input.policy.never_saved(facts);
}

/// Whether `producer` may be fused into the kernel of `user`.
inline bool fusible(const OpClasses& ops, NodeIndex producer, NodeIndex user) {
  return ops.cat[user] || (ops.fusible[producer] && ops.fusible[user]);
}

}  // namespace plumbline::partition

// The nodes that a minimum cut may not recompute: the bans of `solve_min_cut` of PyTorch's partitioners.py.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/partition/cut/min_cut.h"

namespace plumbline::partition {

/// The reason why a node may not be recomputed; None: it may be.
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

/// Returns the reason as a clause, such as "it is random"; empty for None.
std::string_view describe(Ban ban);

/// Returns the ban of each node, indexed by NodeIndex. `dont_ban` as in min_cut(). Linear in the graph, except for the
/// heap of the ban on long chains.
std::vector<Ban> banned_from_recomputation(const CutInput& input, const CutRules& rules,
                                           const std::vector<char>& dont_ban);

/// Whether the policy lets a cut save this tensor. False for a symbolic scalar, although min_cut() may save it.
inline bool can_be_saved(const CutInput& input, NodeIndex node) {
  const NodeFacts& facts = input.ops.facts[node];
  return facts.tensor && !input.policy.overwritten(facts) && !input.policy.never_saved(facts);
}

/// Whether `producer` may be fused with its user into one kernel.
inline bool fusible(const OpClasses& ops, NodeIndex producer, NodeIndex user) {
  return ops.cat[user] || (ops.fusible[producer] && ops.fusible[user]);
}

}  // namespace plumbline::partition

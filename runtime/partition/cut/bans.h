// The nodes that a minimum cut may not recompute: the bans of `solve_min_cut` of PyTorch's partitioners.py.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/partition/cut/min_cut.h"

namespace plumbline::partition {

/// The reason why a node may not be recomputed. A node has the first reason that is found.
enum class Ban : uint8_t {
  /// The node may be recomputed.
  None,
  /// An input of the forward.
  Primal,
  /// A random seed of the forward.
  ForwardSeed,
  /// A call that the user tagged MUST_SAVE.
  MustSave,
  /// Its operator is not a recomputable one of the policy (CutRules::ban_not_in_allowlist).
  NotInAllowlist,
  /// Its operator is in Policy::random; only without ban_not_in_allowlist.
  Random,
  /// Its operator is in Policy::compute_intensive; only without ban_not_in_allowlist.
  ComputeIntensive,
  /// The node, or a view of it, has a user outside the forward with which it cannot be fused, or is an output:
  /// recomputing it would write it to memory (CutRules::ban_materialized_backward).
  MaterializedBackward,
  /// Its distance to the backward lies in the range of Policy::distance (CutRules::ban_too_far).
  TooFar,
  /// Its result has less than a quarter of the bytes of its inputs, so saving it is cheap (CutRules::ban_reductions).
  Reduction,
  /// It uses a value that is also used before a node that cannot be fused, and lies behind that node itself:
  /// recomputing it would need the value beyond that node (CutRules::ban_used_far_apart).
  UsedFarApart,
  /// All paths of a chain of fusible nodes meet in it, more than 100 forward nodes after the start of the chain
  /// (CutRules::ban_long_fusible_chains).
  LongFusibleChain
};

/// Returns the reason as a clause, such as "it is random"; empty for None. Valid until the program ends.
std::string_view describe(Ban ban);

/// Returns the ban of each node, indexed by NodeIndex. `dont_ban` as in min_cut(). O(n + e) for n nodes and e edges;
/// with ban_long_fusible_chains, which uses a heap, O(n + e log e).
std::vector<Ban> banned_from_recomputation(const CutInput& input, const CutRules& rules,
                                           const std::vector<char>& dont_ban);

/// Whether the result of the node is one tensor that the policy lets a cut save. False for a symbolic scalar, which
/// min_cut() may save nevertheless.
inline bool tensor_can_be_saved(const CutInput& input, NodeIndex node) {
  const NodeFacts& facts = input.ops.facts[node];
  return facts.tensor && !input.policy.overwritten(facts) && !input.policy.never_saved(facts);
}

/// Whether `producer` and its user `user` may be fused into one kernel.
inline bool fusible(const OpClasses& ops, NodeIndex producer, NodeIndex user) {
  return ops.cat[user] || (ops.fusible[producer] && ops.fusible[user]);
}

}  // namespace plumbline::partition

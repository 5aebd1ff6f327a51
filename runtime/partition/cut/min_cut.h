// One minimum cut of a joint graph: which forward values to save for the backward, under a policy's rules.
// After `solve_min_cut` of the functorch partitioners: what may not be computed again is banned, the rest weighs its
// bytes (with their factors for distance and for not being materialised), and the cut nearest to the backward is taken.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/cut/classify.h"

namespace plumbline::partition {

/// The rules of one cut: those of the policy, or fewer of them.
struct CutRules {
  bool ban_used_far_apart = true;
  bool ban_long_fusible_chains = true;
  bool ban_materialized_backward = true;
  bool ban_not_in_allowlist = true;  ///< false: only random and compute-intensive nodes are banned
  bool ban_reductions = true;
  bool ban_too_far = true;
  static CutRules of(const Policy& policy);
  static CutRules aggressive(const Policy& policy);  ///< PyTorch's `aggressive_recomputation`
  /// The bans that are on, as the JSON form of joint graphs names them ("used_far_apart"). Without that by distance,
  /// which that form does not know.
  std::vector<std::string> names() const;
};

/// What every cut of one graph shares.
struct CutInput {
  const JointGraph& graph;
  const JointEdges& edges;
  const Policy& policy;
  const OpClasses& ops;
  const NodeClasses& classes;
};

struct CutResult {
  std::vector<NodeIndex> saved;   ///< ascending; tensors, and symbolic scalars where the cut went through them
  std::vector<NodeIndex> banned;  ///< ascending: what the rules forbade to compute again
};

/// `dont_ban` (by node, or empty): exempt from the rules (not from the user's tags).
/// Throws InputError: an input that is neither tensor nor symbolic scalar (BackwardState and other Python objects), by
/// name; or, where no cut exists, with a chain of named nodes: each is said to be impossible to save because of one
/// thing, and to compute again because of another.
CutResult min_cut(const CutInput& input, const CutRules& rules, const std::vector<char>& dont_ban = {});

/// The bytes that the cut counts for a node: of a tensor its bytes, of a tuple the sum, of a symbolic scalar 1.
int64_t cut_bytes(const JointNode& node);

}  // namespace plumbline::partition

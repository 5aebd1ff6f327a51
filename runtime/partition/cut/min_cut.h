// One minimum cut of a joint graph: which forward values to save for the backward, under a policy's rules.
// After `solve_min_cut` of PyTorch's partitioners.py: what may not be computed again is banned, the rest weighs its
// bytes (with their factors for distance and for not being materialised), and the cut nearest to the backward is taken.
#pragma once

#include <vector>

#include "runtime/partition/cut/classify.h"

namespace plumbline::partition {

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

}  // namespace plumbline::partition

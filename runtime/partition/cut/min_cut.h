// One minimum cut of a joint graph: which forward values to save for the backward, under a policy's rules. After
// `solve_min_cut` of PyTorch's partitioners.py: nodes that may not be recomputed are banned, the others weigh their
// bytes (with factors for distance and for not being materialised), and the cut nearest to the backward is taken.
#pragma once

#include <vector>

#include "runtime/partition/cut/classify.h"

namespace plumbline::partition {

/// Shared by all cuts of one graph.
struct CutInput {
  const JointGraph& graph;
  const JointEdges& edges;
  const Policy& policy;
  const OpClasses& ops;
  const NodeClasses& classes;
};

struct CutResult {
  std::vector<NodeIndex> saved;   ///< ascending; tensors, and symbolic scalars that the cut goes through
  std::vector<NodeIndex> banned;  ///< ascending: nodes that the rules banned from recomputation
};

/// `dont_ban` (by node, or empty): nodes exempt from the rules (not from the user's tags). Throws InputError naming an
/// input that is neither a tensor nor a symbolic scalar (BackwardState and other Python objects); or, if no cut exists,
/// a chain of named nodes, with the reason why each can be neither saved nor recomputed.
CutResult min_cut(const CutInput& input, const CutRules& rules, const std::vector<char>& dont_ban = {});

}  // namespace plumbline::partition

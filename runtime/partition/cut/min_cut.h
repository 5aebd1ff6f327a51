// Chooses the forward values to save for the backward by one minimum cut of a joint graph, under a policy's rules.
// After `solve_min_cut` of PyTorch's partitioners.py: nodes that may not be recomputed are banned, saving a tensor
// costs Policy::weight (its bytes, with factors for distance and for values that fusion would keep out of memory), and
// the cut nearest to the backward is taken.
#pragma once

#include <vector>

#include "runtime/partition/cut/classify.h"

namespace plumbline::partition {

/// The tables shared by all cuts of one graph: edges_of(), classify_ops() and classify_nodes() of `graph`. All must
/// outlive the CutInput.
struct CutInput {
  const JointGraph& graph;
  const JointEdges& edges;
  const Policy& policy;
  const OpClasses& ops;
  const NodeClasses& classes;
};

struct CutResult {
  std::vector<NodeIndex> saved;   ///< ascending: tensors and symbolic scalars, inputs of the forward included
  std::vector<NodeIndex> banned;  ///< ascending: nodes that must not be recomputed
};

/// Makes one cut. `dont_ban` (empty, or flags indexed by NodeIndex) exempts nodes from all bans, except those for which
/// Policy::never_given_up holds. Throws InputError naming an input that is neither a tensor nor a symbolic scalar
/// (BackwardState and other Python objects); or, if no cut exists, a chain of nodes, each with the reason why it can be
/// neither saved nor recomputed (explain.h).
CutResult min_cut(const CutInput& input, const CutRules& rules, const std::vector<char>& dont_ban = {});

}  // namespace plumbline::partition

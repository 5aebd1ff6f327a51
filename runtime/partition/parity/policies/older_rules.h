// Rules of PyTorch 2.3 and 2.11 (_functorch/partitioners.py) that differ from those of 2.15 (policy/rules.h).
// parity/policies/policy_file.cc composes them into policies.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/partition/policy/policy.h"

namespace plumbline::partition::older_rules {

// --- 2.11 and 2.3 ----------------------------------------------------------------------------------------------------

/// Equal nodes are always merged: returns no classes (Policy::kept_apart).
inline std::vector<char> nothing_apart(const JointGraph&) { return {}; }

/// Returns the inputs and the nodes tagged MUST_SAVE, ascending.
inline std::vector<NodeIndex> save_inputs_and_tagged(std::vector<NodeIndex> /*last_cut*/,
                                                     const std::vector<NodeIndex>& inputs,
                                                     const std::vector<NodeIndex>& must_save) {
  std::vector<NodeIndex> saved = inputs;
  saved.insert(saved.end(), must_save.begin(), must_save.end());
  std::ranges::sort(saved);
  return saved;
}

// --- 2.3 -------------------------------------------------------------------------------------------------------------

/// `aggressive_recomputation` bans only random and compute-intensive calls.
inline CutRules no_bans(const CutRules&) { return {false, false, false, false, false, false}; }

/// The ban by distance does not apply to graphs with recompute tags.
inline bool in_untagged_graphs(const OpClasses& ops) {
  return std::ranges::none_of(ops.facts, [](const NodeFacts& node) { return node.must_recompute; });
}

/// A view in the forward hides that its users write to memory: only a view of the backward passes this on.
inline bool view_of_backward(const NodeFacts& user, bool in_forward) { return user.view && !in_forward; }

/// Marks (`partitioner_tag`) and mutations keep no node in one half.
inline bool runs_in_either_half(const JointNode&) { return false; }

/// A forward value that is returned as a gradient is computed in the backward, unless it is an input.
inline bool needs_tangent_or_is_gradient(bool needs_tangent, bool is_gradient, bool is_forward_input) {
  return (needs_tangent || is_gradient) && !is_forward_input;
}

/// Only graphs with recompute tags are reordered.
inline bool reorder_tagged_graphs(bool tagged) { return tagged; }

/// The forward is forward_by_data_flow() of default_saves.h; tags are ignored. Throws InputError if a needed result
/// cannot be saved.
SavedValues save_by_data_flow(const JointGraph& graph, const JointEdges& edges, const Policy& policy, bool tagged);

/// The default partition of every graph with tags is its minimum cut.
inline bool in_any_graph(const JointGraph&) { return true; }

}  // namespace plumbline::partition::older_rules

// The rules of PyTorch 2.15 that make up a Policy, as functions and small values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/partition/joint/effects.h"
#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/op_classes.h"

namespace plumbline::partition {

struct CutInput;  // runtime/partition/cut/min_cut.h

/// NodeClasses::distance_to_backward of a node that the backward does not use.
inline constexpr int32_t kFarFromBackward = 1'000'000'000;

/// A predicate on one node.
using NodeRule = bool (*)(const NodeFacts& node);

/// The rules that ban nodes from recomputation in one cut; bans.cc has their definitions.
struct CutRules {
  bool ban_used_far_apart = true;
  bool ban_long_fusible_chains = true;
  bool ban_materialized_backward = true;
  bool ban_not_in_allowlist = true;  ///< false: only random and compute-intensive nodes are banned
  bool ban_reductions = true;
  bool ban_too_far = true;
  /// Returns the active bans by their names in joint-graph files ("used_far_apart"); these have no name for
  /// ban_too_far.
  std::vector<std::string> names() const;
};

/// The values passed from the forward to the backward: tensors, and symbolic scalars.
struct SavedValues {
  std::vector<NodeIndex> tensors, symbols;
};

namespace rules {

inline bool no_node(const NodeFacts&) { return false; }
inline bool is_view(const NodeFacts& node) { return node.view; }
inline bool is_symbolic_float(const NodeFacts& node) { return node.symbolic_float; }
inline bool is_getitem_or_lift(const NodeFacts& node) { return node.getitem || node.lift; }
inline bool is_collective(const NodeFacts& node) { return node.collective; }
inline bool is_updated_later(const NodeFacts& node) { return node.updated_later; }
inline bool is_tagged_to_recompute(const NodeFacts& node) { return node.must_recompute; }

/// `aggressive_recomputation`: bans only random and compute-intensive calls, reductions (if `bans` bans them) and
/// distant nodes.
inline CutRules bans_by_size_and_distance(const CutRules& bans) {
  return {false, false, false, false, bans.ban_reductions, true};
}

inline bool in_every_graph(const OpClasses&) { return true; }
inline bool view_of_either_half(const NodeFacts& user, bool /*in_forward*/) { return user.view; }

/// Returns the tensor's bytes times 1.1^distance_to_backward (clamped to 1 to 100), doubled if fusion would otherwise
/// keep the tensor out of memory.
int64_t weight_by_distance(const CutInput& input, NodeIndex tensor);
/// The same, but 0 for a static primal.
int64_t weight_with_free_parameters(const CutInput& input, NodeIndex tensor);

inline bool needs_tangent(bool needs_tangent, bool /*is_gradient*/, bool /*is_forward_input*/) { return needs_tangent; }

/// Returns, indexed by NodeIndex, whether the node is a gradient or a gradient depends on it. Such a node is not merged
/// with an equal node that only the forward uses: the merged value would have to be saved.
std::vector<char> values_of_gradients(const JointGraph& graph);

inline bool reorder_every_graph(bool /*tagged*/) { return true; }

/// The forward is every node up to the last one marked as forward, and later calls that must run there; in a graph
/// without marks, forward_by_data_flow() of default_saves.h. Saves the forward's values, except nodes tagged to be
/// recomputed and values of which only the sizes are used later; always saves MUST_SAVE nodes and results of calls with
/// effects. Throws InputError if the graph is tagged and a call has effects, or if a needed result cannot be saved.
SavedValues save_by_marks(const JointGraph& graph, const JointEdges& edges, const Policy& policy, bool tagged);
/// Whether some call writes, other than by copy_ or set_ into an input.
bool writes_beyond_inputs(const JointGraph& graph);

inline std::vector<NodeIndex> keep_last_cut(std::vector<NodeIndex> last_cut, const std::vector<NodeIndex>& /*inputs*/,
                                            const std::vector<NodeIndex>& /*must_save*/) {
  return last_cut;
}

}  // namespace rules

/// Bans nodes that are too far from the backward to be recomputed. The defaults ban none.
struct DistanceRule {
  int beyond = 1000;  ///< bans nodes with a larger distance_to_backward; 0: bans none
  int below = 1000;   ///< bans only nodes with a smaller distance_to_backward; 0: no limit
  bool (*applies)(const OpClasses& ops) = &rules::in_every_graph;

  bool bans(int32_t steps) const { return beyond > 0 && steps > beyond && (below == 0 || steps < below); }
};

/// Select the nodes that may run in one half only.
struct HalfRules {
  bool (*only_in_forward)(const JointNode& node) = &must_be_in_forward;
  bool (*only_in_backward)(const JointNode& node) = &must_be_in_backward;
};

/// The order of the recomputed calls that one call of the backward needs.
enum class ReorderBy : uint8_t {
  Graph,  ///< graph order
  Depth   ///< depth first, beginning with the argument with the longest path from the inputs
};

/// The order of calls in both halves.
struct OrderRules {
  bool (*reorders)(bool tagged) = &rules::reorder_every_graph;  ///< in PyTorch's min-cut modes, whether the backward
                                                                ///< is reordered; `tagged`: has recompute tags
  ReorderBy by = ReorderBy::Graph;
  bool raises_getitems = true;  ///< getitems directly follow their call
};

}  // namespace plumbline::partition

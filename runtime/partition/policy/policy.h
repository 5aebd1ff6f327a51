// Policy: the operators that a partitioner considers cheap, and the rules by which it cuts.
//
// A policy is a value: tables of operators, and one function for each question on which versions of PyTorch's
// _functorch/partitioners.py differ. A default Policy has the functions of PyTorch 2.15 (rules.h) and empty tables.
// parity/policies/ has the tables, the functions of older versions, and the reader of policies in JSON (policy_file.h).
// Operators are named by packet ("aten::add" means all overloads), as in partitioners.py. No function may be null.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/rules.h"

namespace plumbline::partition {

/// Names of operator packets.
using OpSet = std::unordered_set<std::string>;

struct Policy {
  std::string name;

  // Operators.
  OpSet recomputable;                ///< cheap enough to recompute
  bool recomputes_pointwise = true;  ///< whether the operators in `pointwise` are recomputable too
  OpSet pointwise;                   ///< packets with an overload that has ATen's tag `pointwise`
  OpSet view;
  OpSet random;             ///< banned from recomputation without ban_not_in_allowlist, too
  OpSet compute_intensive;  ///< banned from recomputation without ban_not_in_allowlist, too

  // Which values may not be recomputed.
  CutRules bans;
  CutRules (*aggressive)(const CutRules& bans) = &rules::bans_by_size_and_distance;  ///< bans of mode Aggressive
  DistanceRule distance;
  std::vector<NodeRule> never_banned = {&rules::is_view, &rules::is_symbolic_float};  ///< nodes that satisfy any
  NodeRule outside_allowlist = &rules::is_getitem_or_lift;  ///< may be recomputed although not in `recomputable`
  NodeRule never_given_up = &rules::is_collective;          ///< a budget does not lift its bans
  /// Whether a value counts as written to memory in the backward if `user` does; `in_forward`: the forward needs it.
  bool (*passes_materialization)(const NodeFacts& user, bool in_forward) = &rules::view_of_either_half;
  int64_t symbolic_noninteger_bytes = 1;  ///< of a symbolic float or bool, for the ban on reductions

  // Which values may be saved, and the weight of saving a value.
  int64_t (*weight)(const CutInput& input, NodeIndex tensor) = &rules::weight_with_free_parameters;
  NodeRule never_saved = &rules::no_node;
  NodeRule overwritten = &rules::is_updated_later;  ///< cannot be saved: the value is lost before the backward begins
  NodeRule forced_to_recompute = &rules::is_tagged_to_recompute;  ///< neither saved nor banned

  // The half to which a node belongs.
  HalfRules halves;
  /// NodeClasses::tangents_closure of a node. needs_tangent: it depends on a tangent or must be in the backward.
  bool (*belongs_to_backward)(bool needs_tangent, bool is_gradient, bool is_forward_input) = &rules::needs_tangent;
  int32_t output_distance = kFarFromBackward;  ///< number of uses from an output of the graph to the backward

  // Clean-up, order, default partition, budget.
  bool cse = true;  ///< whether equal nodes are merged
  /// Returns a class for each node, indexed by NodeIndex: equal nodes of different classes are not merged. An empty
  /// vector: all equal nodes are merged.
  std::vector<char> (*kept_apart)(const JointGraph& graph) = &rules::values_of_gradients;
  OrderRules order;
  /// The values that the default partition saves; `tagged`: the graph has recompute tags.
  SavedValues (*default_saves)(const JointGraph&, const JointEdges&, const Policy&,
                               bool tagged) = &rules::save_by_marks;
  /// Whether mode Default makes a minimum cut of `graph`, which has recompute tags.
  bool (*default_is_min_cut)(const JointGraph& graph) = &rules::writes_beyond_inputs;
  /// The values to save if the knapsack of a budget has no candidates. `must_save`: values with a MUST_SAVE tag.
  std::vector<NodeIndex> (*exhausted_budget)(std::vector<NodeIndex> last_cut, const std::vector<NodeIndex>& inputs,
                                             const std::vector<NodeIndex>& must_save) = &rules::keep_last_cut;
};

}  // namespace plumbline::partition

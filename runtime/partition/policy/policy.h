// Policy: which operators a partitioner considers cheap, and the rules by which it cuts.
//
// A policy is a value: tables of operators, and one function for each question on which versions of PyTorch's
// _functorch/partitioners.py differ. A default Policy has the functions of PyTorch 2.15 (rules.h) and empty tables;
// those of older versions are in parity/policies/, which also reads policies from JSON (policy_file.h). Operators are
// named by packet ("aten::add" means all overloads), as in partitioners.py.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/policy/rules.h"

namespace plumbline::partition {

using OpSet = std::unordered_set<std::string>;

struct Policy {
  std::string name;

  // Operators.
  OpSet recomputable;                ///< cheap enough to recompute
  bool recomputes_pointwise = true;  ///< `pointwise` are recomputable too
  OpSet pointwise;                   ///< packets with an overload that has ATen's tag `pointwise`
  OpSet view;
  OpSet random;
  OpSet compute_intensive;  ///< never recomputed, even where everything else may be

  // Which values may not be recomputed.
  CutRules bans;
  CutRules (*aggressive)(const CutRules& bans) = &rules::bans_by_size_and_distance;
  DistanceRule distance;
  std::vector<NodeRule> never_banned = {&rules::is_view, &rules::is_symbolic_float};
  NodeRule outside_allowlist = &rules::is_getitem_or_lift;  ///< recomputable although not in any table
  NodeRule never_given_up = &rules::is_collective;          ///< a budget does not make it recomputable
  /// Whether a value is written to memory in the backward whenever this user, a view, is.
  bool (*passes_materialization)(const NodeFacts& user, bool in_forward) = &rules::view_of_either_half;
  int64_t symbolic_noninteger_bytes = 1;  ///< of a symbolic float or bool, for the ban on reductions

  // Which values may be saved, and the weight of saving one.
  int64_t (*weight)(const CutInput& input, NodeIndex tensor) = &rules::weight_with_free_parameters;
  NodeRule never_saved = &rules::no_node;
  NodeRule overwritten = &rules::is_updated_later;  ///< its value is lost before the backward begins
  NodeRule forced_to_recompute = &rules::is_tagged_to_recompute;

  // Which half a node belongs to.
  HalfRules halves;
  bool (*belongs_to_backward)(bool needs_tangent, bool is_gradient, bool is_forward_input) = &rules::needs_tangent;
  int32_t output_distance = kFarFromBackward;  ///< steps from an output of the forward to the backward

  // Clean-up, order, default partition, budget.
  bool cse = true;  ///< equal nodes are merged
  /// By node: equal nodes with different values here are not merged; empty: all equal nodes are.
  std::vector<char> (*kept_apart)(const JointGraph& graph) = &rules::values_of_gradients;
  OrderRules order;
  SavedValues (*default_saves)(const JointGraph&, const JointEdges&, const Policy&,
                               bool tagged) = &rules::save_by_marks;
  /// Whether the default partition of this graph, which has recompute tags, is its minimum cut.
  bool (*default_is_min_cut)(const JointGraph& graph) = &rules::writes_beyond_inputs;
  /// The values to save if the knapsack has no candidates.
  std::vector<NodeIndex> (*exhausted_budget)(std::vector<NodeIndex> last_cut, const std::vector<NodeIndex>& inputs,
                                             const std::vector<NodeIndex>& must_save) = &rules::keep_last_cut;
};

}  // namespace plumbline::partition

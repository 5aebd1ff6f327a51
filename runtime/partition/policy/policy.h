// Policy: what a partitioner counts as cheap, and by which rules it cuts.
//
// A policy is a value: tables of operators, and one function for each question on which versions of PyTorch's
// _functorch/partitioners.py differ. A default Policy has the functions of PyTorch 2.15 (rules.h) and empty tables;
// those of older versions are in parity/policies/, where policies are also read from JSON (policy_file.h).
// Operators are named by packet ("aten::add": all overloads alike), as in partitioners.py.
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
  OpSet recomputable;                ///< cheap enough to compute again
  bool recomputes_pointwise = true;  ///< `pointwise` are recomputable too
  OpSet pointwise;                   ///< packets of which an overload has ATen's tag `pointwise`
  OpSet view;
  OpSet random;
  OpSet compute_intensive;  ///< never computed again, also where everything else may be

  // Which values may not be computed again.
  CutRules bans;
  CutRules (*aggressive)(const CutRules& bans) = &rules::bans_by_size_and_distance;
  DistanceRule distance;
  std::vector<NodeRule> never_banned = {&rules::is_view, &rules::is_symbolic_float};
  NodeRule outside_allowlist = &rules::is_getitem_or_lift;  ///< recomputable although no table names it
  NodeRule never_given_up = &rules::is_collective;          ///< a budget does not make it recomputable
  /// A value is written to memory in the backward where this user, a view, is.
  bool (*passes_materialization)(const NodeFacts& user, bool in_forward) = &rules::view_of_either_half;
  int64_t symbolic_noninteger_bytes = 1;  ///< of a symbolic float or bool, to the ban of reductions

  // Which values may be saved, and what saving one weighs.
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
  /// By node: equal nodes that differ here are not merged; empty: all are.
  std::vector<char> (*kept_apart)(const JointGraph& graph) = &rules::values_of_gradients;
  OrderRules order;
  SavedValues (*default_saves)(const JointGraph&, const JointEdges&, const Policy&,
                               bool tagged) = &rules::save_by_marks;
  /// The default partition of this graph, which has tags to recompute, is its minimum cut.
  bool (*default_is_min_cut)(const JointGraph& graph) = &rules::writes_beyond_inputs;
  /// The values to save where nothing is left for the knapsack to choose.
  std::vector<NodeIndex> (*exhausted_budget)(std::vector<NodeIndex> last_cut, const std::vector<NodeIndex>& inputs,
                                             const std::vector<NodeIndex>& must_save) = &rules::keep_last_cut;
};

}  // namespace plumbline::partition

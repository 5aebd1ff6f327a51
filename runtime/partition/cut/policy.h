// Policy: what a partitioner counts as cheap, and which of PyTorch's rules it follows; tables, as data.
//
// Operators are known by packet ("aten::add": all overloads alike), as in the functorch partitioners that the tables
// are taken from. A policy is read from JSON (policies/*.json are built in; a user may bring a file of the same form,
// whole or on top of a built-in one). policies/README.md describes the form.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

using OpSet = std::unordered_set<std::string>;

/// The defaults are the rules of PyTorch 2.15.
struct Policy {
  std::string name;

  // Operators.
  OpSet recomputable;                ///< cheap enough to run again
  bool recomputes_pointwise = true;  ///< `pointwise` are recomputable too
  OpSet pointwise;                   ///< packets of which an overload has ATen's tag `pointwise`
  OpSet view;
  OpSet random;
  OpSet compute_intensive;  ///< never run again, also where everything else may be

  // Clean-up, default partition, order.
  bool cse = true;
  bool cse_keeps_forward_only_apart = true;    ///< 2.15: a forward-only value is not merged with one the backward needs
  bool always_reorder = true;                  ///< seed: the backward is reordered only where nodes are tagged
  bool default_by_data_flow = false;           ///< seed: the default partition's forward is what the outputs need
  bool default_with_tags_is_min_cut = false;   ///< seed
  bool exhausted_budget_saves_inputs = false;  ///< 2.11: nothing left for the knapsack: inputs + MUST_SAVE

  // What may not be computed again; the first five are the bans that a cut may switch off (CutRules).
  bool ban_used_far_apart = true;
  bool ban_long_fusible_chains = true;
  bool ban_materialized_backward = true;
  bool ban_not_in_allowlist = true;
  bool ban_reductions = true;
  int max_distance = 1000;        ///< nor what is farther from the backward than this; 0: no such ban
  int max_distance_below = 1000;  ///< but only below this distance (2.x: so that at the defaults none is); 0: no end
  bool distance_counts_with_tags = true;  ///< seed: no ban by distance where nodes are tagged
  bool aggressive_only_denies = false;    ///< seed: aggressive bans nothing but random and compute-intensive calls
  bool allowlist_holds_getitems = false;  ///< seed: also getitem and lift_fresh must be in it
  bool never_ban_views = true;
  bool never_ban_symbolic_floats = true;
  bool never_unban_collectives = true;    ///< a budget does not make them recomputable
  bool views_hide_forward_uses = false;   ///< seed: materialized-in-backward looks through backward views only
  int64_t symbolic_noninteger_bytes = 1;  ///< of a symbolic float or bool, to the ban of reductions; seed: 999999

  // What may be saved, and where nodes belong.
  bool params_free_to_save = true;
  bool recompute_views = false;            ///< views are never saved
  bool epilogue_mutation_infinite = true;  ///< 2.15: a primal updated after the forward is not saved as it was
  bool recompute_tags_force = true;        ///< seed: a tag to recompute only lifts the bans
  bool honours_marks = true;               ///< seed: JointMark means nothing, nor where a mutation was traced
  bool only_inputs_pass_through_as_gradients = false;  ///< seed: other forward values returned so are computed anew
  bool outputs_are_next_to_backward = false;           ///< seed: an output of the forward is one step from the backward
};

/// "seed", "seed-nvfuser", "torch-2.11", "torch-2.15", or the path of a JSON file. Throws InputError.
Policy load_policy(const std::string& name_or_path);
/// A policy given as text; `source` opens the errors.
Policy parse_policy(std::string_view json, const std::string& source);
std::vector<std::string> policy_names();

/// What every cut asks of a node. A JointNode is large, and a graph has many of them: here they lie side by side.
struct NodeFacts {
  int64_t bytes = 0;       ///< cut_bytes()
  bool input : 1 = false;  ///< of any kind
  bool primal : 1 = false;
  bool forward_seed : 1 = false;
  bool call : 1 = false;  ///< getitems too
  bool getitem : 1 = false;
  bool lift : 1 = false;        ///< aten::lift_fresh or lift_fresh_copy
  bool collective : 1 = false;  ///< of _c10d_functional
  bool must_save : 1 = false;
  bool must_recompute : 1 = false;
  bool tensor : 1 = false;  ///< its result is one; else a scalar, or nothing that can be saved
  bool symbolic : 1 = false;
  bool symbolic_float : 1 = false;
  bool symbolic_noninteger : 1 = false;
  bool updated_later : 1 = false;  ///< JointNode::epilogue_mutation
  bool reduces : 1 = false;        ///< to less than a quarter of the bytes of its direct positional arguments
};

/// The policy's words on each node of one graph, looked up once; all by node.
struct OpClasses {
  std::vector<char> recomputable, view, random, compute_intensive;
  std::vector<char> fusible;  ///< recomputable or random: may be fused with others of the kind
  std::vector<char> cat;      ///< aten::cat: any producer may be fused into it
  std::vector<NodeFacts> facts;
};
OpClasses classify_ops(const JointGraph& graph, const Policy& policy);

}  // namespace plumbline::partition

// Policy: what a partitioner counts as cheap, and which of PyTorch's rules it follows; tables, as data.
//
// Operators are known by packet ("aten::add": all overloads alike), as in the functorch partitioners that the tables
// are taken from. A policy is read from JSON (policies/*.json are built in; a user may bring a file of the same form).
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "runtime/partition/joint_graph.h"

namespace plumbline {

using OpSet = std::unordered_set<std::string>;

struct Policy {
  std::string name;

  // Operators.
  OpSet recomputable;  ///< cheap enough to run again
  bool pointwise_recomputable =
      false;        ///< packets of which an overload has ATen's tag `pointwise` are recomputable too
  OpSet pointwise;  ///< those packets
  OpSet view;
  OpSet random;
  OpSet compute_intensive;  ///< never run again, also where everything else may be

  // Rules; their numbers are those of PyTorch, see policies/README.md.
  bool ban_used_far_apart = true;
  bool ban_long_fusible_chains = true;
  bool ban_materialized_backward = true;
  bool ban_not_in_allowlist = true;
  bool ban_reductions = true;
  int max_dist_from_bw = 1000;                 ///< 0: no such ban
  bool dist_ban_below_only = true;             ///< 2.x: only below 1000, so that at the default it never bans
  bool views_follow_only_non_forward = false;  ///< seed: materialized-in-backward looks through such view users only
  bool never_ban_views = true;
  bool primals_always_banned = true;
  bool tangents_closure = true;  ///< forward values returned as gradients may be saved
  bool params_free_to_save = true;
  bool epilogue_mutation_infinite = true;
  bool cse = true;
  bool cse_keeps_forward_only_apart = true;    ///< 2.15: a forward-only value is not merged with one the backward needs
  bool always_reorder = true;                  ///< seed: the backward is reordered only where nodes are tagged
  bool default_by_data_flow = false;           ///< seed: the default partition's forward is what the outputs need
  bool default_with_tags_is_min_cut = false;   ///< seed
  bool exhausted_budget_saves_inputs = false;  ///< 2.11: nothing left for the knapsack: inputs + MUST_SAVE
  int64_t fallback_elements = 4096;            ///< of a size that is not known

  bool is_recomputable(const JointNode& node) const;
};

/// "seed", "seed-nvfuser", "torch-2.11", "torch-2.15", or the path of a JSON file. Throws InputError.
Policy load_policy(const std::string& name_or_path);
std::vector<std::string> policy_names();

/// The policy's words on each node of one graph, looked up once. `fusible` = recomputable or random.
struct OpClasses {
  std::vector<char> recomputable, view, random, compute_intensive, fusible;  // by node
};
OpClasses classify_ops(const JointGraph& graph, const Policy& policy);

}  // namespace plumbline

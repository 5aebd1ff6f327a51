#include "runtime/partition/parity/policies/policy_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;

/// The classes of one operator under a policy, by PyTorch's names.
std::vector<std::string> classes_of(const std::string& op, const Policy& policy) {
  JointGraph graph;
  graph.nodes.push_back({.name = "x", .kind = JointKind::Call, .op = op, .overload = "default"});
  const OpClasses ops = classify_ops(graph, policy);
  std::vector<std::string> names;
  if (ops.recomputable[0]) names.emplace_back("recomputable");
  if (ops.random[0]) names.emplace_back("random");
  if (ops.facts[0].view) names.emplace_back("view");
  if (ops.compute_intensive[0]) names.emplace_back("compute_intensive");
  if (ops.fusible[0]) names.emplace_back("fusible");
  std::ranges::sort(names);
  return names;
}

TEST(Policy, ClassesOfEveryRecordedOperatorAreThoseOfPyTorch) {
  int checked = 0;
  for (const JointGraphFile& file : golden_files())
    for (const auto& [name, variant] : file.variants) {
      const Policy policy = load_policy("torch-" + variant.torch.substr(0, variant.torch.rfind('.')));
      for (const auto& [op, classes] : variant.op_class) {
        std::vector<std::string> expected = classes;
        std::ranges::sort(expected);
        EXPECT_EQ(classes_of(op, policy), expected) << file.model << ' ' << name << ' ' << op;
        ++checked;
      }
    }
  EXPECT_GT(checked, 1000);
}

TEST(Policy, BuiltInOnesHaveTheSizesThatTheirSourcesHave) {
  EXPECT_EQ(policy_names(), (std::vector<std::string>{"seed", "seed-nvfuser", "torch-2.11", "torch-2.15"}));
  const Policy newest = load_policy("torch-2.15"), older = load_policy("torch-2.11"), seed = load_policy("seed"),
               nvfuser = load_policy("seed-nvfuser");
  EXPECT_EQ(newest.name, "torch-2.15");
  EXPECT_EQ(newest.recomputable.size(), 158u);  // 159 in Python, one of which is a lambda
  EXPECT_EQ(older.recomputable.size(), 157u);
  EXPECT_EQ(newest.pointwise.size(), 260u);
  EXPECT_EQ(older.pointwise.size(), 252u);
  for (const Policy* policy : {&newest, &older}) {
    EXPECT_EQ(policy->view.size(), 12u);
    EXPECT_EQ(policy->compute_intensive.size(), 11u);
    EXPECT_EQ(policy->random.size(), 3u);
  }
  EXPECT_EQ(seed.view.size(), 10u);
  EXPECT_EQ(nvfuser.view.size(), 3u);
  EXPECT_EQ(seed.compute_intensive.size(), 13u);
  EXPECT_TRUE(nvfuser.recomputes_pointwise);
  EXPECT_EQ(seed.distance.beyond, 3);
  EXPECT_EQ(nvfuser.distance.beyond, 0);
  EXPECT_TRUE(seed.recomputable.contains("aten::permute"));
  EXPECT_FALSE(nvfuser.recomputable.contains("aten::permute"));
  EXPECT_TRUE(newest.recomputable.contains("prims::prepare_softmax_online"));
  EXPECT_FALSE(older.recomputable.contains("prims::prepare_softmax_online"));
}

bool same_rules(const Policy& a, const Policy& b) {
  return a.bans.names() == b.bans.names() && a.aggressive == b.aggressive && a.distance.beyond == b.distance.beyond &&
         a.distance.below == b.distance.below && a.distance.applies == b.distance.applies &&
         std::ranges::is_permutation(a.never_banned, b.never_banned) && a.outside_allowlist == b.outside_allowlist &&
         a.never_given_up == b.never_given_up && a.passes_materialization == b.passes_materialization &&
         a.symbolic_noninteger_bytes == b.symbolic_noninteger_bytes && a.weight == b.weight &&
         a.never_saved == b.never_saved && a.overwritten == b.overwritten &&
         a.forced_to_recompute == b.forced_to_recompute && a.halves.only_in_forward == b.halves.only_in_forward &&
         a.halves.only_in_backward == b.halves.only_in_backward && a.belongs_to_backward == b.belongs_to_backward &&
         a.output_distance == b.output_distance && a.cse == b.cse && a.kept_apart == b.kept_apart &&
         a.order.reorders == b.order.reorders && a.order.by == b.order.by &&
         a.order.raises_getitems == b.order.raises_getitems && a.default_saves == b.default_saves &&
         a.default_is_min_cut == b.default_is_min_cut && a.exhausted_budget == b.exhausted_budget;
}

/// The rules of a new Policy are given twice: as defaults and in torch-2.15.json.
TEST(Policy, DefaultsAreThoseOfTheNewest) {
  EXPECT_TRUE(same_rules(load_policy("torch-2.15"), Policy()));
  EXPECT_FALSE(same_rules(load_policy("torch-2.11"), Policy()));
  EXPECT_FALSE(same_rules(load_policy("seed"), Policy()));
}

TEST(Policy, AFileComposesRulesOfAnyVersion) {
  std::string rules;
  for (const char* key :
       {"cse_keeps_forward_only_apart", "always_reorder", "ban_used_far_apart", "ban_long_fusible_chains",
        "distance_counts_with_tags", "never_ban_views", "never_ban_symbolic_floats", "never_unban_collectives",
        "params_free_to_save", "epilogue_mutation_infinite", "recompute_tags_force", "honours_marks"})
    rules += "\"" + std::string(key) + "\": true, ";
  for (const char* key : {"default_by_data_flow", "default_with_tags_is_min_cut", "exhausted_budget_saves_inputs",
                          "aggressive_only_denies", "allowlist_holds_getitems", "views_hide_forward_uses",
                          "only_inputs_pass_through_as_gradients", "outputs_are_next_to_backward"})
    rules += "\"" + std::string(key) + "\": false, ";
  rules += R"("max_distance": 1000, "max_distance_below": 1000, "symbolic_noninteger_bytes": 1)";
  const Policy policy = parse_policy(R"({"name": "newer", "base": "seed", "rules": {)" + rules + "}}", "test");
  EXPECT_TRUE(same_rules(policy, Policy())) << "2.3 with every rule of 2.15";
}

TEST(Policy, AFileMayReplaceAListOrChangeIt) {
  const Policy own = parse_policy(R"({"name": "own", "base": "seed", "recomputable_ops": ["aten::mul"]})", "test");
  EXPECT_EQ(classes_of("aten::mul", own), (std::vector<std::string>{"fusible", "recomputable"}));
  EXPECT_EQ(classes_of("aten::cos", own), std::vector<std::string>{});  // a full list is complete

  const Policy changed = parse_policy(
      R"({"name": "changed", "base": "torch-2.15", "about": "x", "recomputable_ops": {"add": ["my::op"], "remove": ["aten::sum"]},
          "rules": {"ban_reductions": false, "max_distance": 7}})",
      "test");
  EXPECT_EQ(classes_of("my::op", changed), (std::vector<std::string>{"fusible", "recomputable"}));
  EXPECT_EQ(classes_of("aten::sum", changed), std::vector<std::string>{});
  EXPECT_EQ(classes_of("aten::cos", changed), (std::vector<std::string>{"fusible", "recomputable"}));
  EXPECT_FALSE(changed.bans.ban_reductions);
  EXPECT_EQ(changed.distance.beyond, 7);
  EXPECT_TRUE(changed.bans.ban_used_far_apart);
}

TEST(Policy, RefusesWhatItDoesNotKnow) {
  const auto why = [](const std::string& json) { return testing::refusal([&] { parse_policy(json, "p.json"); }); };
  EXPECT_EQ(why(R"({"name": "x", "base": "torch-1.0"})"),
            "p.json: base: expected one of seed, seed-nvfuser, torch-2.11, torch-2.15, not \"torch-1.0\"");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "rules": {"ban_everything": true}})"),
                       "p.json: rules: expected rules listed in policies/README.md (here is \"ban_everything\")");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "view_op": []})"), "(here is \"view_op\")");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "view_ops": ["aten.view"]})"),
                       "p.json: view_ops[0]: expected an operator without its overload, such as \"aten::add\"");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "view_ops": ["aten::view.default"]})"), "view_ops[0]");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "view_ops": ["a::b", "a::b"]})"),
                       "expected each operator once");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "view_ops": {"remove": ["aten::cos"]}})"),
                       "expected operators of the base, which lacks 'aten::cos'");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "rules": {"max_distance": -1}})"), "rules.max_distance");
  testing::expect_part(why(R"({"name": "x", "base": "seed", "rules": {"cse": 1}})"), "rules.cse");
  testing::expect_part(why(R"({"base": "seed"})"), "name");
  testing::expect_part(why(R"({"name": "x"})"), "recomputable_ops");
  testing::expect_part(testing::refusal([] { load_policy("no/such/file.json"); }),
                       "policy 'no/such/file.json': neither one of seed, seed-nvfuser");
}

}  // namespace
}  // namespace plumbline::partition

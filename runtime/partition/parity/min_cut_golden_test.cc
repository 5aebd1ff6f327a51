// Repeats every minimum cut that PyTorch made on the recorded graphs with the same rules, and compares the saved and
// banned nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/partition/cut/forced_saves.h"
#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/joint/clean.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/names_of.h"

namespace plumbline::partition {
namespace {

using testing::names_of;

/// The graph as PyTorch cut it: the file lists the removed and merged nodes.
JointGraph as_cut(const JointGraphFile& file, const JointGraphFile::Variant& variant) {
  JointGraph graph = file.graphs.at(variant.graph);
  std::map<std::string, NodeIndex> index;
  for (NodeIndex i = 0; i < std::ssize(graph.nodes); ++i) index[graph.nodes[i].name] = i;
  std::vector<char> keep(graph.nodes.size(), 1);
  for (const std::string& name : variant.dce_removed) keep[index.at(name)] = 0;
  std::vector<NodeIndex> stands_for(graph.nodes.size());
  for (NodeIndex i = 0; i < std::ssize(graph.nodes); ++i) stands_for[i] = i;
  for (const auto& [duplicate, kept] : variant.cse_merged) {
    stands_for[index.at(duplicate)] = index.at(kept);
    keep[index.at(duplicate)] = 0;
  }
  const auto rename = [&](const auto& self, JointArgument& argument) -> void {
    if (argument.kind == JointArgument::Kind::Node) argument.node = stands_for[argument.node];
    for (JointArgument& item : argument.items) self(self, item);
  };
  for (JointNode& node : graph.nodes) {
    for (JointArgument& argument : node.args) rename(rename, argument);
    for (auto& [name, argument] : node.kwargs) rename(rename, argument);
    if (node.aliases_input != kNoNode) node.aliases_input = stands_for[node.aliases_input];
  }
  for (NodeIndex& output : graph.outputs)
    if (output != kNoNode) output = stands_for[output];
  graph = keep_nodes(graph, keep).graph;
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), must_recompute)) settle_recompute_tags(graph, false);
  force_saves(graph);
  return graph;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

struct Cutting {
  JointGraph graph;
  Policy policy;
  JointEdges edges = edges_of(graph);
  OpClasses ops = classify_ops(graph, policy);

  CutResult cut(const std::vector<int>& statics, const CutRules& rules, const std::vector<std::string>& exempt) const {
    const NodeClasses classes = classify_nodes(graph, edges, policy, ops, statics);
    std::vector<char> dont_ban(graph.nodes.size(), 0);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      dont_ban[i] = std::ranges::find(exempt, graph.nodes[i].name) != exempt.end();
    return min_cut({graph, edges, policy, ops, classes}, rules, dont_ban);
  }
};

CutRules rules_of(const std::vector<std::string>& bans) {
  const auto on = [&](const char* ban) { return std::ranges::find(bans, ban) != bans.end(); };
  return {on("used_far_apart"), on("long_fusible_chains"), on("materialized_backward"), on("not_in_allowlist"),
          on("reductions")};
}

TEST(MinCutGolden, SavedAndBannedAreThoseOfEveryRecordedCut) {
  int cuts = 0;
  for (const JointGraphFile& file : golden_files())
    for (const auto& [variant_name, variant] : file.variants) {
      const Cutting cutting{as_cut(file, variant),
                            load_policy("torch-" + variant.torch.substr(0, variant.torch.rfind('.')))};
      ASSERT_EQ(std::ssize(cutting.graph.nodes), variant.nodes_left) << file.model << ' ' << variant_name;
      for (const auto& [run_name, run] : file.runs) {
        if (run.variant != variant_name) continue;
        for (const JointGraphFile::Cut& cut : run.cuts) {
          SCOPED_TRACE(file.model + " " + run_name);
          const CutRules rules = rules_of(cut.bans);
          EXPECT_EQ(rules.names(), cut.bans);
          const CutResult result = cutting.cut(run.static_inputs, rules, cut.dont_ban);
          EXPECT_EQ(sorted(names_of(cutting.graph, result.saved)), sorted(cut.saved));
          EXPECT_EQ(sorted(names_of(cutting.graph, result.banned)), sorted(cut.banned));
          ++cuts;
        }
      }
    }
  EXPECT_GT(cuts, 1000);
}

/// By the partitioners of PyTorch 2.3 (testdata/README.md).
TEST(MinCutGolden, SeedPoliciesSaveWhatThePartitionersOfPyTorch23Do) {
  int cuts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLUMBLINE_PARTITION_TESTDATA "/seed")) {
    const JointGraphFile file = read_joint_graph_file(entry.path().string());
    for (const auto& [variant_name, variant] : file.variants) {
      const Cutting cutting{as_cut(file, variant), load_policy(variant.torch)};
      for (const auto& [run_name, run] : file.runs) {
        if (run.variant != variant_name || run.cuts.empty()) continue;
        SCOPED_TRACE(file.model + " " + run_name);
        const CutRules rules =
            run.mode == "aggressive" ? cutting.policy.aggressive(cutting.policy.bans) : cutting.policy.bans;
        EXPECT_EQ(sorted(names_of(cutting.graph, cutting.cut({}, rules, {}).saved)), sorted(run.cuts.front().saved));
        ++cuts;
      }
    }
  }
  EXPECT_GE(cuts, 100);
}

}  // namespace
}  // namespace plumbline::partition

// Every minimum cut that PyTorch made on the recorded graphs, made again from the same rules: saved and banned.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/partition/clean.h"
#include "runtime/partition/forced_saves.h"
#include "runtime/partition/min_cut.h"
#include "runtime/partition/testing/golden_files.h"

namespace plumbline {
namespace {

/// The graph as it was when PyTorch cut it. What was removed and merged is taken from the file.
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

std::vector<std::string> names(const JointGraph& graph, const std::vector<NodeIndex>& nodes) {
  std::vector<std::string> names;
  for (const NodeIndex node : nodes) names.push_back(graph.nodes[node].name);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

TEST(MinCutGolden, SavedAndBannedAreThoseOfEveryRecordedCut) {
  int cuts = 0;
  for (const JointGraphFile& file : golden_files())
    for (const auto& [variant_name, variant] : file.variants) {
      const JointGraph graph = as_cut(file, variant);
      ASSERT_EQ(std::ssize(graph.nodes), variant.nodes_left) << file.model << ' ' << variant_name;
      const Policy policy = load_policy("torch-" + variant.torch.substr(0, variant.torch.rfind('.')));
      const JointEdges edges = edges_of(graph);
      const OpClasses ops = classify_ops(graph, policy);
      for (const auto& [run_name, run] : file.runs) {
        if (run.variant != variant_name) continue;
        const NodeClasses classes = classify_nodes(graph, edges, policy, run.static_inputs);
        for (const JointGraphFile::Cut& cut : run.cuts) {
          SCOPED_TRACE(file.model + " " + run_name);
          const auto on = [&](const char* ban) { return std::ranges::find(cut.bans, ban) != cut.bans.end(); };
          const CutRules rules{on("used_far_apart"), on("long_fusible_chains"), on("materialized_backward"),
                               on("not_in_allowlist"), on("reductions")};
          EXPECT_EQ(rules.names(), cut.bans);
          std::vector<char> dont_ban(graph.nodes.size(), 0);
          for (size_t i = 0; i < graph.nodes.size(); ++i)
            dont_ban[i] = std::ranges::find(cut.dont_ban, graph.nodes[i].name) != cut.dont_ban.end();
          const CutResult result = min_cut({graph, edges, policy, ops, classes}, rules, dont_ban);
          EXPECT_EQ(names(graph, result.saved), sorted(cut.saved));
          EXPECT_EQ(names(graph, result.banned), sorted(cut.banned));
          ++cuts;
        }
      }
    }
  EXPECT_GT(cuts, 1000);
}

}  // namespace
}  // namespace plumbline

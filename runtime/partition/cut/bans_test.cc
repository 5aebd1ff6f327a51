#include "runtime/partition/cut/bans.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/joint_graph_builder.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;

/// The reason why each node is banned, under all rules of a policy.
std::vector<Ban> bans(const JointGraph& graph, const std::string& name) {
  const Policy policy = load_policy(name);
  const JointEdges edges = edges_of(graph);
  const OpClasses ops = classify_ops(graph, policy);
  const NodeClasses classes = classify_nodes(graph, edges, policy, ops, {});
  return banned_from_recomputation({graph, edges, policy, ops, classes}, policy.bans, {});
}

TEST(Bans, UsesFartherThanTheFirstUnfusibleOne) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex shared = build.call("cos", {x}, 64), near = build.call("sin", {shared}, 64);
  const NodeIndex mm = build.call("mm", {near, near}, 64), far = build.call("exp", {shared}, 64);
  const NodeIndex sum = build.call("add", {far, near}, 64), last = build.call("mul", {mm, sum}, 64);
  build.begin_backward();
  const std::vector<Ban> banned = bans(build.graph({last}, {build.call("mul", {tangent, shared}, 64)}), "torch-2.15");
  EXPECT_EQ(banned[shared], Ban::None);
  EXPECT_EQ(banned[near], Ban::None);
  EXPECT_EQ(banned[mm], Ban::NotInAllowlist);
  EXPECT_EQ(banned[far], Ban::UsedFarApart);  // mm comes before it
  EXPECT_EQ(banned[sum], Ban::None);          // mm uses its input `near` too, but no unfusible node is in between
}

TEST(Bans, TheBorderItselfIsNotBeyondIt) {  // the first unfusible use is one of the uses
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex shared = build.call("cos", {x}, 64), mm = build.call("mm", {shared, shared}, 64);
  const NodeIndex both = build.call("add", {shared, mm}, 64), last = build.call("exp", {both}, 64);
  build.begin_backward();
  const std::vector<Ban> banned =
      bans(build.graph({last}, {build.call("mul", {tangent, build.call("sin", {both}, 64)}, 64)}), "torch-2.15");
  EXPECT_EQ(banned[both], Ban::None);
}

TEST(Bans, AReductionHasLessThanAQuarterOfItsDirectArguments) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), y = build.primal(32), tangent = build.tangent(64);
  const NodeIndex a = build.call("sum", {x}, 16), b = build.call("sum", {x}, 12);
  const NodeIndex twice = build.call("sum", {y, y}, 12), once = build.call("sum", {y}, 12);
  const NodeIndex listed = build.call("sum", {x}, 12), keyword = build.call("sum", {x}, 12);
  for (const NodeIndex node : {listed, keyword}) {
    const JointArgument argument = std::exchange(build.at(node).args, {}).front();
    if (node == listed)
      build.at(node).args = {{.kind = JointArgument::Kind::List, .items = {argument}}};
    else
      build.at(node).kwargs = {{"input", argument}};
  }
  NodeIndex last = a;
  for (const NodeIndex node : {b, twice, once, listed, keyword}) last = build.call("add", {last, node}, 16);
  build.begin_backward();
  const std::vector<Ban> banned = bans(build.graph({last}, {build.call("mul", {tangent, last}, 64)}), "torch-2.15");
  EXPECT_EQ(banned[a], Ban::None);           // 16 = 64 / 4
  EXPECT_EQ(banned[b], Ban::Reduction);      // 12 < 64 / 4
  EXPECT_EQ(banned[twice], Ban::Reduction);  // 12 < (32 + 32) / 4
  EXPECT_EQ(banned[once], Ban::None);        // 12 > 32 / 4
  EXPECT_EQ(banned[listed], Ban::None);      // PyTorch counts no arguments in lists,
  EXPECT_EQ(banned[keyword], Ban::None);     // and no keywords
}

/// A chain of `length` fusible calls after a primal; `between` is called after each.
template <class Between>
std::vector<Ban> chain(int length, std::vector<NodeIndex>& calls, Between&& between) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  NodeIndex value = build.call("cos", {x}, 64);
  calls = {value};
  for (int i = 1; i < length; ++i) {
    value = build.call("cos", {value}, 64);
    calls.push_back(value);
    between(build, calls);
    value = calls.back();
  }
  const NodeIndex last = build.call("mm", {value, value}, 64);
  build.begin_backward();
  return bans(build.graph({last}, {build.call("mul", {tangent, build.call("sin", {calls[0]}, 64)}, 64)}), "torch-2.15");
}

TEST(Bans, ALongChainIsBrokenEvery102Nodes) {
  std::vector<NodeIndex> calls;
  const std::vector<Ban> banned = chain(350, calls, [](JointGraphBuilder&, const std::vector<NodeIndex>&) {});
  std::vector<int> broken;
  for (int i = 0; i < 350; ++i)
    if (banned[calls[i]] == Ban::LongFusibleChain) broken.push_back(i);
  // "More than 100 after the start" is 101; the next chain starts after the node that broke the first.
  EXPECT_EQ(broken, (std::vector{101, 203, 305}));
}

TEST(Bans, ALongChainBeginsAnewAtWhatIsBanned) {
  std::vector<NodeIndex> calls;
  const std::vector<Ban> banned = chain(200, calls, [](JointGraphBuilder& build, std::vector<NodeIndex>& made) {
    if (made.size() == 61) build.at(made.back()).recompute = CheckpointPolicy::MustSave;
  });
  EXPECT_EQ(banned[calls[60]], Ban::MustSave);
  EXPECT_EQ(banned[calls[101]], Ban::None);
  EXPECT_EQ(banned[calls[161]], Ban::LongFusibleChain);
}

TEST(Bans, AChainWithAnotherWayAroundIsNotBrokenThere) {
  std::vector<NodeIndex> calls;
  const std::vector<Ban> banned = chain(150, calls, [](JointGraphBuilder& build, std::vector<NodeIndex>& made) {
    if (made.size() != 102) return;  // the 101st has a second use, which is still open when the 102nd is reached
    const NodeIndex aside = build.call("exp", {made[100]}, 64);
    made.push_back(build.call("add", {made.back(), aside}, 64));
  });
  EXPECT_EQ(banned[calls[101]], Ban::None);
  EXPECT_EQ(banned[calls[103]], Ban::LongFusibleChain);
}

TEST(Bans, ViewsHideUsesOnlyWhereTheyAreOfTheForwardAndOnlyInTheSeed) {
  const auto banned_behind_view = [](bool forward_view, const std::string& policy) {
    JointGraphBuilder build;
    const NodeIndex x = build.primal(64), tangent = build.tangent(64);
    const NodeIndex cos = build.call("cos", {x}, 64);
    std::vector<NodeIndex> outputs = {build.call("exp", {cos}, 64)};
    const NodeIndex view = build.view("view", cos);
    if (forward_view) outputs.push_back(build.call("neg", {view}, 64));
    build.begin_backward();
    return bans(build.graph(outputs, {build.call("mm", {tangent, view}, 64)}), policy)[cos];
  };
  EXPECT_EQ(banned_behind_view(false, "seed"), Ban::MaterializedBackward);
  EXPECT_EQ(banned_behind_view(true, "seed"), Ban::None);
  EXPECT_EQ(banned_behind_view(false, "torch-2.15"), Ban::MaterializedBackward);
  EXPECT_EQ(banned_behind_view(true, "torch-2.15"), Ban::MaterializedBackward);
}

TEST(Bans, WhatIsTaggedToBeSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex cos = build.call("cos", {x}, 64), view = build.view("view", cos), exp = build.call("exp", {view}, 64);
  build.at(cos).recompute = build.at(view).recompute = CheckpointPolicy::MustSave;
  build.begin_backward();
  const JointGraph graph = build.graph({exp}, {build.call("mul", {tangent, build.call("sin", {view}, 64)}, 64)});
  EXPECT_EQ(bans(graph, "torch-2.15")[cos], Ban::MustSave);
  EXPECT_EQ(bans(graph, "torch-2.15")[view], Ban::None);  // views never are
  EXPECT_EQ(bans(graph, "seed")[view], Ban::MustSave);
}

}  // namespace
}  // namespace plumbline::partition

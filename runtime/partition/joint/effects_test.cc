#include "runtime/partition/joint/effects.h"

#include <gtest/gtest.h>

#include "runtime/partition/testing/joint_graph_builder.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;

TEST(Effects, SeededCallsDrawUnlessTheirDropoutIsZero) {
  JointNode node{.name = "drop", .op = "aten::native_dropout", .overload = "default"};
  EXPECT_FALSE(draws_random_numbers(node));
  node.seeded = true;  // the mark `impure` beside it may be missing
  EXPECT_TRUE(draws_random_numbers(node));
  EXPECT_FALSE(has_effects(node));
  node.impure = true;
  EXPECT_FALSE(has_effects(node));

  node.op = "aten::_scaled_dot_product_flash_attention_for_cpu";
  EXPECT_FALSE(draws_random_numbers(node));
  node.kwargs.emplace_back("dropout_p", JointArgument{.kind = JointArgument::Kind::Float, .real = 0.1});
  EXPECT_TRUE(draws_random_numbers(node));
  node.kwargs[0].second.real = 0;
  EXPECT_FALSE(draws_random_numbers(node));
}

TEST(Effects, DrawsAndEffectsMustRunInTheHalfThatRanThem) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(4), tangent = build.tangent(4);
  const NodeIndex draw = build.call("rand_like", {x}, 4), log = build.call("own::log", {draw}, 4);
  build.begin_backward();
  const NodeIndex late = build.call("rand_like", {x}, 4), of_late = build.call("own::log", {late}, 4);
  const NodeIndex of_tangent = build.call("rand_like", {tangent}, 4), pure = build.call("mul", {tangent, x}, 4);
  const NodeIndex unmarked = build.call("own::log", {x}, 4);
  for (const NodeIndex effect : {log, of_late, unmarked}) build.at(effect).impure = true;
  const auto in = [](const std::vector<char>& flags) {
    std::vector<NodeIndex> nodes;
    for (size_t i = 0; i < flags.size(); ++i)
      if (flags[i]) nodes.push_back(static_cast<NodeIndex>(i));
    return nodes;
  };
  // Without a mark: the backward's behind the last call that is marked as the forward's,
  for (const NodeIndex node : {of_late, of_tangent, unmarked}) build.at(node).mark = JointMark::None;
  JointGraph graph = build.graph({x}, {pure});
  MustRun must = calls_that_must_run(graph, edges_of(graph));
  EXPECT_EQ(in(must.in_forward), (std::vector<NodeIndex>{draw, log}));
  EXPECT_EQ(in(must.in_backward), (std::vector<NodeIndex>{late, of_late, of_tangent, unmarked}));
  // or, in a graph without such, where it needs what only the backward has.
  for (const NodeIndex node : {draw, log}) graph.nodes[node].mark = JointMark::None;
  must = calls_that_must_run(graph, edges_of(graph));
  EXPECT_EQ(in(must.in_forward), (std::vector<NodeIndex>{draw, log, unmarked}));
  EXPECT_EQ(in(must.in_backward), (std::vector<NodeIndex>{late, of_late, of_tangent}));
}

}  // namespace
}  // namespace plumbline::partition

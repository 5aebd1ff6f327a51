#include "runtime/partition/reorder.h"

#include <gtest/gtest.h>

#include "runtime/partition/extract.h"
#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/partition/testing/names_of.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;
using testing::names_of;

using Names = std::vector<std::string>;

/// Two branches: the gradient of the second comes first and needs nothing of the first.
struct Branches {
  JointGraphBuilder build;
  NodeIndex x = build.primal(400), tangent = build.tangent(400), tangent_2 = build.tangent(400);
  NodeIndex cos = build.call("aten::cos", {x}, 400), cos_1 = build.call("aten::cos", {cos}, 400),
            exp = build.call("aten::exp", {x}, 400), exp_1 = build.call("aten::exp", {exp}, 400);
  NodeIndex mul = build.call("aten::mul", {tangent_2, exp_1}, 400), sum = build.call("aten::sum", {exp}, 400),
            mul_1 = build.call("aten::mul", {mul, sum}, 400), mul_2 = build.call("aten::mul", {cos, cos_1}, 400),
            mul_3 = build.call("aten::mul", {tangent, mul_2}, 400), add = build.call("aten::add", {mul_1, mul_3}, 400);
  JointGraph graph() { return build.graph({cos_1, exp_1}, {add}); }
};

TEST(Reorder, OnlyWhatTheNextGradientNeedsIsComputed) {
  Branches branches;
  Partition partition = extract(branches.graph(), {branches.x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops),
            (Names{"cos", "cos_1", "exp", "exp_1", "mul", "sum", "mul_1", "mul_2", "mul_3", "add"}));
  const JointEdges edges = edges_of(partition.graph);
  Subgraph by_graph = partition.backward, by_depth = partition.backward;
  reorder_as_autograd(partition.graph, edges, by_graph, ReorderBy::Graph);
  EXPECT_EQ(names_of(partition.graph, by_graph.ops),
            (Names{"exp", "exp_1", "mul", "sum", "mul_1", "cos", "cos_1", "mul_2", "mul_3", "add"}));
  EXPECT_EQ(by_graph.inputs, partition.backward.inputs);
  EXPECT_EQ(by_graph.outputs, partition.backward.outputs);
  // By depth: mul_2 needs cos_1, which needs cos; here both orders agree.
  reorder_as_autograd(partition.graph, edges, by_depth, ReorderBy::Depth);
  EXPECT_EQ(by_depth.ops, by_graph.ops);
}

TEST(Reorder, TheSeedTakesTheDeepestArgumentFirst) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex cos = build.call("aten::cos", {x}, 400), sin = build.call("aten::sin", {x}, 400),
                  sin_1 = build.call("aten::sin", {sin}, 400), add = build.call("aten::add", {cos, sin_1}, 400);
  const NodeIndex exp = build.call("aten::exp", {x}, 400);
  const NodeIndex mul = build.call("aten::mul", {tangent, add}, 400), mul_1 = build.call("aten::mul", {mul, exp}, 400);
  Partition partition = extract(build.graph({add}, {mul_1}), {x}, {}, Policy(), false);
  const JointEdges edges = edges_of(partition.graph);
  Subgraph by_graph = partition.backward, by_depth = partition.backward;
  reorder_as_autograd(partition.graph, edges, by_graph, ReorderBy::Graph);
  EXPECT_EQ(names_of(partition.graph, by_graph.ops), (Names{"cos", "sin", "sin_1", "add", "mul", "exp", "mul_1"}));
  // add(cos, sin_1): sin_1 is deeper.
  reorder_as_autograd(partition.graph, edges, by_depth, ReorderBy::Depth);
  EXPECT_EQ(names_of(partition.graph, by_depth.ops), (Names{"sin", "sin_1", "cos", "add", "mul", "exp", "mul_1"}));
}

TEST(Reorder, WithoutATangentNothingMoves) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400);
  build.tangent(400);
  const NodeIndex y = build.call("aten::cos", {x}, 400), b = build.call("aten::exp", {x}, 400),
                  a = build.call("aten::sin", {x}, 400), gradient = build.call("aten::add", {a, b}, 400);
  const Partition partition = extract(build.graph({y}, {gradient}), {x}, {}, Policy(), true);
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"exp", "sin", "add"}));
}

/// Returns its tangent unchanged as the gradient of x; the gradient of w is followed by an assertion without users.
struct ReturnsItsTangent {
  JointGraphBuilder build;
  NodeIndex x = build.primal(400), w = build.primal(400), tangent = build.tangent(400);
  NodeIndex y = build.call("aten::add", {x, w}, 400);
  Partition divided(bool reorder) {
    build.begin_backward();
    const NodeIndex gradient = build.call("aten::exp", {w}, 400);
    build.at(build.call("aten::_assert_async", {w}, 400)).impure = true;
    return extract(build.graph({y}, {tangent, gradient}), {w}, {}, Policy(), reorder);
  }
};

TEST(Reorder, ATangentReturnedAsItCameIsUsedAtTheEnd) {
  const Partition partition = ReturnsItsTangent().divided(true);
  // Calls before the first use of a tangent are dropped unless they are needed.
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"exp"}));
}

/// Two splits of inputs, whose results are used together.
struct Splits {
  JointGraphBuilder build;
  NodeIndex x = build.primal(400), y = build.primal(400), tangent = build.tangent(400);
  std::vector<NodeIndex> a = build.split(x, 2), b = build.split(y, 2);
  NodeIndex split = a[0] - 1, split_1 = b[0] - 1;
  NodeIndex sin = build.call("aten::sin", {a[1]}, 200), cat = build.call("aten::cat", {sin, b[1], a[0], b[0]}, 800);
  JointGraph graph = build.graph({cat}, {tangent});
};

TEST(Reorder, GetitemsFollowTheirCallInTheirOrder) {
  Splits of;
  Subgraph part{{of.x, of.y}, {of.split, of.split_1, of.b[1], of.a[1], of.sin, of.a[0], of.b[0], of.cat}, {of.cat}};
  raise_getitems(of.graph, edges_of(of.graph), part);
  EXPECT_EQ(part.ops,
            (std::vector<NodeIndex>{of.split, of.a[1], of.a[0], of.split_1, of.b[1], of.b[0], of.sin, of.cat}));
}

TEST(Reorder, GetitemsOfAnInputComeFirst) {
  Splits of;
  Subgraph part{{of.split, of.y}, {of.split_1, of.a[1], of.sin, of.a[0]}, {of.sin, of.a[0]}};
  raise_getitems(of.graph, edges_of(of.graph), part);
  EXPECT_EQ(part.ops, (std::vector<NodeIndex>{of.a[1], of.a[0], of.split_1, of.sin}));
}

TEST(Reorder, TheSeedLeavesGetitemsWhereTheyAre) {
  Splits of;
  Partition partition;
  partition.graph = of.graph;
  const std::vector<NodeIndex> ops = {of.split, of.split_1, of.a[1], of.sin, of.a[0], of.b[0], of.b[1], of.cat};
  partition.forward = {{of.x, of.y}, ops, {of.cat}};
  Policy policy;
  policy.order.raises_getitems = false;
  order_calls(partition, edges_of(of.graph), policy, Reordering::None);
  EXPECT_EQ(partition.forward.ops, ops);
  policy.order.raises_getitems = true;
  order_calls(partition, edges_of(of.graph), policy, Reordering::None);
  EXPECT_NE(partition.forward.ops, ops);
}

TEST(Reorder, CopiesIntoInputsBeforeTheFirstGradientStay) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), w = build.primal(400), tangent = build.tangent(400);
  const NodeIndex y = build.call("aten::cos", {x}, 400);
  const NodeIndex exp = build.call("aten::exp", {w}, 400), copy = build.call("aten::copy_", {w, exp}, 400),
                  gradient = build.call("aten::mul", {tangent, x}, 400);
  build.at(copy).writes = build.at(copy).impure = true;
  build.at(copy).mark = JointMark::MustBeInBackward;
  const Partition partition = extract(build.graph({y}, {gradient, kNoNode}), {x, w}, {}, Policy(), true);
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"exp", "copy_", "mul"}));
}

/// Backward calls that read no tangent: a log, two draws of which the second is needed first, a write to a value that
/// an earlier call reads.
struct Effects {
  JointGraphBuilder build;
  NodeIndex x = build.primal(400), w = build.primal(400), tangent = build.tangent(400);
  NodeIndex y = build.call("aten::cos", {x}, 400);
  NodeIndex exp, log, rand, rand_1, sin, copy, mul, mul_1, mul_2, mul_3;

  Effects() {
    build.begin_backward();
    exp = build.call("aten::exp", {x}, 400);
    log = build.call("own::log", {exp}, 400);
    rand = build.call("aten::rand_like", {x}, 400);
    rand_1 = build.call("aten::rand_like", {x}, 400);
    sin = build.call("aten::sin", {w}, 400);
    copy = build.call("aten::add_", {w, y}, 400);
    mul = build.call("aten::mul", {tangent, rand_1}, 400);
    mul_1 = build.call("aten::mul", {mul, rand}, 400);
    mul_2 = build.call("aten::mul", {mul_1, sin}, 400);
    mul_3 = build.call("aten::mul", {mul_2, exp}, 400);
    build.at(log).impure = true;
    for (const NodeIndex draw : {rand, rand_1}) build.at(draw).seeded = build.at(draw).impure = true;
    build.at(copy).writes = build.at(copy).impure = true;
  }
  Partition divided() { return extract(build.graph({y}, {mul_3, kNoNode}), {x, w, y}, {}, Policy(), false); }
};

TEST(Reorder, OurOwnOrderKeepsEffectsAndDrawsInTheirs) {
  Effects effects;
  const Partition partition = effects.divided();
  const JointEdges edges = edges_of(partition.graph);
  for (const ReorderBy by : {ReorderBy::Graph, ReorderBy::Depth}) {
    Subgraph own = partition.backward;
    reorder_as_autograd(partition.graph, edges, own, by, Reordering::KeepsEffects);
    // The log needs exp; sin reads w before add_ writes it.
    EXPECT_EQ(names_of(partition.graph, own.ops), names_of(partition.graph, partition.backward.ops));
  }
  // PyTorch drops the log and the write, and runs the second draw first.
  Subgraph theirs = partition.backward;
  reorder_as_autograd(partition.graph, edges, theirs, ReorderBy::Graph);
  EXPECT_EQ(names_of(partition.graph, theirs.ops),
            (Names{"rand_like_1", "mul", "rand_like", "mul_1", "sin", "mul_2", "exp", "mul_3"}));
}

TEST(Reorder, WhatHasNoEffectWaitsBehindEffectsUntilItIsNeeded) {
  Effects effects;
  JointGraph graph = effects.divided().graph;
  graph.nodes[effects.copy].writes = false;  // without a write, sin may run late
  Partition partition = extract(std::move(graph), {effects.x, effects.w, effects.y}, {}, Policy(), false);
  reorder_as_autograd(partition.graph, edges_of(partition.graph), partition.backward, ReorderBy::Graph,
                      Reordering::KeepsEffects);
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops),
            (Names{"exp", "log", "rand_like", "rand_like_1", "add_", "mul", "mul_1", "sin", "mul_2", "mul_3"}));
}

TEST(Reorder, EffectsRunWhereATangentIsOnlyReturned) {
  Partition partition = ReturnsItsTangent().divided(false);
  order_calls(partition, edges_of(partition.graph), Policy(), Reordering::KeepsEffects);
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"exp", "_assert_async"}));
}

}  // namespace
}  // namespace plumbline::partition

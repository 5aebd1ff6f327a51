#include "runtime/partition/reorder.h"

#include <gtest/gtest.h>

#include "runtime/partition/extract.h"
#include "runtime/testing/joint_graph_builder.h"

namespace plumbline {
namespace {

using Names = std::vector<std::string>;

/// Two branches: the gradient of the second comes first, and needs nothing of the first.
struct Branches {
  JointGraphBuilder build;
  NodeIndex x = build.primal(), tangent = build.tangent(), tangent_2 = build.tangent();
  NodeIndex cos = build.call("aten::cos", {x}), cos_1 = build.call("aten::cos", {cos}),
            exp = build.call("aten::exp", {x}), exp_1 = build.call("aten::exp", {exp});
  NodeIndex mul = build.call("aten::mul", {tangent_2, exp_1}), sum = build.call("aten::sum", {exp}),
            mul_1 = build.call("aten::mul", {mul, sum}), mul_2 = build.call("aten::mul", {cos, cos_1}),
            mul_3 = build.call("aten::mul", {tangent, mul_2}), add = build.call("aten::add", {mul_1, mul_3});
  JointGraph graph() { return build.finish({cos_1, exp_1}, {add}); }
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
  // Depth: mul_2 of (cos, cos_1) asks for cos_1 first, which asks for cos: here the same order.
  reorder_as_autograd(partition.graph, edges, by_depth, ReorderBy::Depth);
  EXPECT_EQ(by_depth.ops, by_graph.ops);
}

TEST(Reorder, TheSeedTakesTheDeepestArgumentFirst) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), tangent = build.tangent();
  const NodeIndex cos = build.call("aten::cos", {x}), sin = build.call("aten::sin", {x}),
                  sin_1 = build.call("aten::sin", {sin}), add = build.call("aten::add", {cos, sin_1});
  const NodeIndex exp = build.call("aten::exp", {x});
  const NodeIndex mul = build.call("aten::mul", {tangent, add}), mul_1 = build.call("aten::mul", {mul, exp});
  Partition partition = extract(build.finish({add}, {mul_1}), {x}, {}, Policy(), false);
  const JointEdges edges = edges_of(partition.graph);
  Subgraph by_graph = partition.backward, by_depth = partition.backward;
  reorder_as_autograd(partition.graph, edges, by_graph, ReorderBy::Graph);
  EXPECT_EQ(names_of(partition.graph, by_graph.ops), (Names{"cos", "sin", "sin_1", "add", "mul", "exp", "mul_1"}));
  // add(cos, sin_1): sin_1 lies deeper.
  reorder_as_autograd(partition.graph, edges, by_depth, ReorderBy::Depth);
  EXPECT_EQ(names_of(partition.graph, by_depth.ops), (Names{"sin", "sin_1", "cos", "add", "mul", "exp", "mul_1"}));
}

TEST(Reorder, WithoutATangentNothingMoves) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal();
  build.tangent();
  const NodeIndex y = build.call("aten::cos", {x}), b = build.call("aten::exp", {x}), a = build.call("aten::sin", {x}),
                  gradient = build.call("aten::add", {a, b});
  const Partition partition = extract(build.finish({y}, {gradient}), {x}, {}, Policy(), true);
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"exp", "sin", "add"}));
}

TEST(Reorder, ATangentReturnedAsItCameIsUsedAtTheEnd) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), w = build.primal(), tangent = build.tangent();
  const NodeIndex y = build.call("aten::add", {x, w}), gradient = build.call("aten::exp", {w}),
                  asserted = build.call("aten::_assert_async", {w});
  build[asserted].impure = true;
  const Partition partition = extract(build.finish({y}, {tangent, gradient}), {w}, {}, Policy(), true);
  // What stands before the first use of a tangent and is not needed is left out.
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"exp"}));
}

TEST(Reorder, GetitemsFollowTheirCallInTheirOrder) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), y = build.primal(), tangent = build.tangent();
  const NodeIndex split = build.tuple("aten::split", {x}, {{5, 10}, {5, 10}}),
                  split_1 = build.tuple("aten::split", {y}, {{5, 10}, {5, 10}});
  const NodeIndex a = build.getitem(split_1, 1), b = build.getitem(split, 1), sin = build.call("aten::sin", {b}),
                  c = build.getitem(split, 0), d = build.getitem(split_1, 0),
                  cat = build.call("aten::cat", {sin, a, c, d});
  const NodeIndex gradient = build.call("aten::mul", {tangent, x});
  const Partition partition = extract(build.finish({cat}, {gradient, kNoNode}), {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.ops),
            (Names{"split", "getitem_1", "getitem_2", "split_1", "getitem", "getitem_3", "sin", "cat"}));
}

TEST(Reorder, TheSeedLeavesGetitemsWhereTheyAre) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), tangent = build.tangent();
  const NodeIndex split = build.tuple("aten::split", {x}, {{5, 10}, {5, 10}});
  const NodeIndex b = build.getitem(split, 1), sin = build.call("aten::sin", {b}), a = build.getitem(split, 0),
                  cat = build.call("aten::cat", {sin, a});
  const NodeIndex gradient = build.call("aten::mul", {tangent, x});
  Policy seed;
  seed.always_reorder = false;
  const Partition partition = extract(build.finish({cat}, {gradient}), {x}, {}, seed, false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.ops), (Names{"split", "getitem", "sin", "getitem_1", "cat"}));
}

TEST(Reorder, CopiesIntoInputsBeforeTheFirstGradientStay) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), w = build.primal(), tangent = build.tangent();
  const NodeIndex y = build.call("aten::cos", {x});
  const NodeIndex exp = build.call("aten::exp", {w}), copy = build.call("aten::copy_", {w, exp}),
                  gradient = build.call("aten::mul", {tangent, x});
  build[copy].writes = build[copy].impure = true;
  build[copy].mark = JointMark::MustBeInBackward;
  const Partition partition = extract(build.finish({y}, {gradient, kNoNode}), {x, w}, {}, Policy(), true);
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"exp", "copy_", "mul"}));
}

}  // namespace
}  // namespace plumbline

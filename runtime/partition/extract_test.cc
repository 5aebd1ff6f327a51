#include "runtime/partition/extract.h"

#include <gtest/gtest.h>

#include "runtime/testing/joint_graph_builder.h"
#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

using Names = std::vector<std::string>;

/// x.cos().cos().cos() and its backward, as autograd writes it.
struct Cosines {
  JointGraphBuilder build;
  NodeIndex x = build.primal(), tangent = build.tangent();
  NodeIndex cos = build.call("aten::cos", {x}), cos_1 = build.call("aten::cos", {cos}),
            cos_2 = build.call("aten::cos", {cos_1});
  NodeIndex sin = build.call("aten::sin", {cos_1}), neg = build.call("aten::neg", {sin}),
            mul = build.call("aten::mul", {tangent, neg});
  NodeIndex sin_1 = build.call("aten::sin", {cos}), neg_1 = build.call("aten::neg", {sin_1}),
            mul_1 = build.call("aten::mul", {mul, neg_1});
  NodeIndex sin_2 = build.call("aten::sin", {x}), neg_2 = build.call("aten::neg", {sin_2}),
            mul_2 = build.call("aten::mul", {mul_1, neg_2});
  JointGraph graph() { return build.finish({cos_2}, {mul_2}); }
};

TEST(Extract, SavedValuesDivideTheGraph) {
  Cosines cosines;
  const Partition partition =
      extract(cosines.graph(), {cosines.x, cosines.cos, cosines.cos_1}, {}, Policy(), /*reorder=*/false);
  const JointGraph& graph = partition.graph;
  EXPECT_EQ(names_of(graph, partition.forward.inputs), (Names{"primals_1"}));
  EXPECT_EQ(names_of(graph, partition.forward.ops), (Names{"cos", "cos_1", "cos_2"}));
  EXPECT_EQ(names_of(graph, partition.forward.outputs), (Names{"cos_2", "primals_1", "cos", "cos_1"}));
  EXPECT_EQ(names_of(graph, partition.backward.inputs), (Names{"primals_1", "cos", "cos_1", "tangents_1"}));
  EXPECT_EQ(names_of(graph, partition.backward.ops),
            (Names{"sin", "neg", "mul", "sin_1", "neg_1", "mul_1", "sin_2", "neg_2", "mul_2"}));
  EXPECT_EQ(names_of(graph, partition.backward.outputs), (Names{"mul_2"}));
  EXPECT_EQ(partition.recomputed(), std::vector<NodeIndex>());
}

TEST(Extract, WhatTheBackwardDoesNotUseIsNotSaved) {
  Cosines cosines;
  const Partition partition =
      extract(cosines.graph(), {cosines.x, cosines.cos, cosines.cos_1, cosines.cos_2}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.saved), (Names{"primals_1", "cos", "cos_1"}));
  EXPECT_EQ(names_of(partition.graph, partition.forward.outputs), (Names{"cos_2", "primals_1", "cos", "cos_1"}));
}

TEST(Extract, WhatIsNotSavedRunsAgain) {
  Cosines cosines;
  const Partition partition = extract(cosines.graph(), {cosines.x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.outputs), (Names{"cos_2", "primals_1"}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops),
            (Names{"cos", "cos_1", "sin", "neg", "mul", "sin_1", "neg_1", "mul_1", "sin_2", "neg_2", "mul_2"}));
  EXPECT_EQ(names_of(partition.graph, partition.recomputed()), (Names{"cos", "cos_1"}));
}

TEST(Extract, TheOrderOfTheSavedValuesIsKept) {
  Cosines cosines;
  const Partition partition = extract(cosines.graph(), {cosines.cos_1, cosines.x, cosines.cos}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.saved), (Names{"cos_1", "primals_1", "cos"}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.inputs), (Names{"cos_1", "primals_1", "cos", "tangents_1"}));
}

TEST(Extract, ValuesWithoutVersionCheckGoLast) {
  Cosines cosines;
  cosines.build[cosines.x].no_vc_check = true;
  const Partition partition = extract(cosines.graph(), {cosines.x, cosines.cos, cosines.cos_1}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.saved), (Names{"cos", "cos_1", "primals_1"}));
}

TEST(Extract, AnOutputThatNeedsWhatIsNotThereIsRefusedByName) {
  Cosines cosines;
  const JointGraph graph = cosines.graph();
  EXPECT_EQ(refusal([&] { extract_subgraph(graph, {cosines.x}, {cosines.mul_1}); }),
            "partition: the subgraph cannot compute its output 'mul_1': it needs 'tangents_1', which is not among the "
            "inputs of the subgraph");
  // The gradient needs cos_1, which is neither saved nor to be had from what is.
  EXPECT_EQ(refusal([&] { extract(graph, {cosines.cos}, {}, Policy(), false); }),
            "partition: the backward cannot compute its output 'mul_2': it needs 'primals_1', which is not among the "
            "inputs of the backward");
}

TEST(Extract, InnerNodesMayBeInputs) {
  Cosines cosines;
  const Subgraph part = extract_subgraph(cosines.graph(), {cosines.cos_1, cosines.tangent}, {cosines.mul, kNoNode});
  EXPECT_EQ(part.ops, (std::vector<NodeIndex>{cosines.sin, cosines.neg, cosines.mul}));
  EXPECT_EQ(part.outputs, (std::vector<NodeIndex>{cosines.mul, kNoNode}));
}

TEST(Extract, DeadCallsGoUnlessTheyHaveEffects) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), tangent = build.tangent();
  const NodeIndex y = build.call("aten::cos", {x});
  const NodeIndex dead = build.call("aten::sin", {y});
  const NodeIndex random = build.call("aten::rand_like", {y});
  const NodeIndex asserted = build.call("aten::_assert_async", {y});
  const NodeIndex on_gradient = build.call("aten::_assert_async", {tangent});
  const NodeIndex gradient = build.call("aten::mul", {tangent, x});
  build[random].seeded = build[random].impure = true;
  build[asserted].impure = build[on_gradient].impure = true;
  const Partition partition = extract(build.finish({y}, {gradient}), {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.ops), (Names{"cos", "_assert_async"}));
  // Each half keeps all calls with effects that it can compute.
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops),
            (Names{"cos", "_assert_async", "_assert_async_1", "mul"}));
  EXPECT_EQ(partition.replayed, std::vector<NodeIndex>());
  EXPECT_EQ(dead, 3);
}

TEST(Extract, CallsThatWriteStayInTheirHalf) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), tangent = build.tangent();
  const NodeIndex y = build.call("aten::cos", {x});
  const NodeIndex forward_write = build.call("aten::copy_", {x, y});
  const NodeIndex gradient = build.call("aten::mul", {tangent, x});
  const NodeIndex backward_write = build.call("aten::copy_", {x, gradient});
  build[forward_write].writes = build[backward_write].writes = true;
  build[forward_write].impure = build[backward_write].impure = true;
  build[backward_write].mark = JointMark::IsBackward;
  const Partition partition = extract(build.finish({y}, {gradient}), {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.ops), (Names{"cos", "copy_"}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"mul", "copy__1"}));
}

TEST(Extract, AWriteOfTheBackwardAmongTheForwardOutputsIsItsTarget) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), tangent = build.tangent();
  const NodeIndex y = build.call("aten::cos", {x});
  const NodeIndex gradient = build.call("aten::mul", {tangent, x});
  const NodeIndex write = build.call("aten::copy_", {x, gradient});
  build[write].writes = build[write].impure = true;
  build[write].mark = JointMark::MustBeInBackward;
  const JointGraph graph = build.finish({write, y}, {gradient});
  const Partition partition = extract(graph, {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.outputs), (Names{"primals_1", "cos", "primals_1"}));
}

TEST(Extract, SymbolsInTheShapesOfWhatCrossesAreBound) {
  JointGraphBuilder build;
  const NodeIndex rows = build.symbolic_primal("s0", 4), columns = build.symbolic_primal("s1", 6), x = build.primal(),
                  tangent = build.tangent();
  const NodeIndex twice = build.symbolic_call("operator::mul", {rows}, "2*s0", 8);
  const NodeIndex y = build.call("aten::view", {x, twice});
  const NodeIndex gradient = build.call("aten::view", {tangent, twice});
  build[x].free_symbols = {"s0", "s1"};
  build[tangent].free_symbols = {"s0"};
  build[twice].free_symbols = {"s0"};
  const NodeIndex product = build.call("aten::mul", {gradient, x});
  const Partition partition =
      extract(build.finish({y}, {kNoNode, kNoNode, product}), {x}, {columns, twice}, Policy(), false);
  // `columns` is not used and goes; `twice` needs s0, x needs s1 as well. What binds stands before what is derived.
  EXPECT_EQ(partition.saved_symbols, (std::vector<NodeIndex>{rows, columns, twice}));
  EXPECT_EQ(partition.backward.inputs, (std::vector<NodeIndex>{rows, columns, twice, x, tangent}));
  EXPECT_EQ(partition.forward.outputs, (std::vector<NodeIndex>{y, x, rows, columns, twice}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.outputs), (Names{"None", "None", "mul_1"}));
}

TEST(Extract, SeedsGoToTheHalfTheyBelongTo) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), forward_seed = build.primal(), backward_seed = build.primal(),
                  tangent = build.tangent();
  build[forward_seed].kind = JointKind::ForwardSeed;
  build[backward_seed].kind = JointKind::BackwardSeed;
  const NodeIndex y = build.call("aten::mul", {x, forward_seed});
  const NodeIndex gradient = build.call("aten::mul", {tangent, backward_seed});
  const Partition partition = extract(build.finish({y}, {gradient}), {x}, {}, Policy(), false);
  EXPECT_EQ(partition.forward.inputs, (std::vector<NodeIndex>{x, forward_seed}));
  EXPECT_EQ(partition.backward.inputs, (std::vector<NodeIndex>{tangent, backward_seed}));
}

TEST(Extract, RandomCallsThatRunTwiceAreReplayed) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(), tangent = build.tangent();
  const NodeIndex noise = build.call("aten::rand_like", {x}), other = build.call("aten::rand_like", {x});
  build[noise].seeded = build[other].seeded = true;
  const NodeIndex y = build.call("aten::mul", {x, noise}), z = build.call("aten::mul", {y, other});
  const NodeIndex gradient = build.call("aten::mul", {tangent, noise}),
                  gradient_1 = build.call("aten::mul", {gradient, other});
  const JointGraph graph = build.finish({z}, {gradient_1});
  EXPECT_EQ(extract(graph, {x, other}, {}, Policy(), false).replayed, (std::vector<NodeIndex>{noise}));
  EXPECT_EQ(extract(graph, {x}, {}, Policy(), false).replayed, (std::vector<NodeIndex>{noise, other}));
  EXPECT_EQ(extract(graph, {noise, other}, {}, Policy(), false).replayed, std::vector<NodeIndex>());
}

TEST(Extract, AttentionWithoutDropoutDrawsNothing) {
  const auto replayed = [](double dropout, bool written) {
    JointGraphBuilder build;
    const NodeIndex x = build.primal(), tangent = build.tangent();
    const NodeIndex y = build.call("aten::_scaled_dot_product_flash_attention_for_cpu", {x, x, x});
    build[y].seeded = true;
    if (written) {
      JointArgument& argument = build[y].args.emplace_back();
      argument.kind = JointArgument::Kind::Float;
      argument.real = dropout;
    }
    const NodeIndex gradient = build.call("aten::mul", {tangent, y});
    return extract(build.finish({y}, {gradient}), {x}, {}, Policy(), false).replayed.size();
  };
  EXPECT_EQ(replayed(0.0, true), 0u);
  EXPECT_EQ(replayed(0.0, false), 0u);
  EXPECT_EQ(replayed(0.5, true), 1u);
}

}  // namespace
}  // namespace plumbline

#include "runtime/partition/extract.h"

#include <gtest/gtest.h>

#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/partition/testing/names_of.h"
#include "runtime/partition/testing/pytorch_graphs.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::Cosines;
using testing::JointGraphBuilder;
using testing::names_of;

using Names = std::vector<std::string>;

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
  cosines.build.at(cosines.x).no_vc_check = true;
  const Partition partition = extract(cosines.graph(), {cosines.x, cosines.cos, cosines.cos_1}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.saved), (Names{"cos", "cos_1", "primals_1"}));
}

TEST(Extract, AnOutputThatNeedsWhatIsNotThereIsRefusedByName) {
  Cosines cosines;
  const JointGraph graph = cosines.graph();
  // The gradient needs cos_1, which is neither saved nor computable from the saved values.
  EXPECT_EQ(testing::refusal([&] { extract(graph, {cosines.cos}, {}, Policy(), false); }),
            "partition: the backward cannot compute its output 'mul_2': it needs 'primals_1', which is not among the "
            "inputs of the backward");
}

TEST(Extract, InnerNodesMayBeInputs) {
  Cosines cosines;
  const JointGraph graph = cosines.graph();
  const JointEdges edges = edges_of(graph);
  const Subgraph part = extract_subgraph(graph, edges, calls_that_must_run(graph, edges),
                                         {cosines.cos_1, cosines.tangent}, {cosines.mul, kNoNode}, GraphHalf::Backward);
  EXPECT_EQ(part.ops, (std::vector<NodeIndex>{cosines.sin, cosines.neg, cosines.mul}));
  EXPECT_EQ(part.outputs, (std::vector<NodeIndex>{cosines.mul, kNoNode}));
}

TEST(Extract, DeadCallsGoUnlessTheyHaveEffects) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex y = build.call("aten::cos", {x}, 400);
  const NodeIndex dead = build.call("aten::sin", {y}, 400);
  const NodeIndex random = build.call("aten::rand_like", {y}, 400);
  const NodeIndex asserted = build.call("aten::_assert_async", {y}, 400);
  const NodeIndex on_gradient = build.call("aten::_assert_async", {tangent}, 400);
  const NodeIndex gradient = build.call("aten::mul", {tangent, x}, 400);
  build.at(random).seeded = build.at(random).impure = true;
  build.at(asserted).impure = build.at(on_gradient).impure = true;
  const Partition partition = extract(build.graph({y}, {gradient}), {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.ops), (Names{"cos", "rand_like", "_assert_async"}));
  // The backward need not repeat the forward's assertions.
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"_assert_async_1", "mul"}));
  EXPECT_EQ(partition.replayed, std::vector<NodeIndex>());
  EXPECT_EQ(dead, 3);
}

TEST(Extract, DrawsAndEffectsStayInTheHalfThatTheModelRanThemIn) {
  for (const bool marks_bind : {true, false}) {  // version 2.3 has no marks, but the model ran the calls all the same
    JointGraphBuilder build;
    const NodeIndex x = build.primal(400), tangent = build.tangent(400);
    const NodeIndex noise = build.call("aten::rand_like", {x}, 400), log = build.call("own::log", {x}, 400);
    const NodeIndex y = build.call("aten::cos", {x}, 400);
    build.begin_backward();
    const NodeIndex late_noise = build.call("aten::rand_like", {x}, 400), late_log = build.call("own::log", {x}, 400);
    const NodeIndex gradient = build.call("aten::mul", {tangent, x}, 400);
    for (const NodeIndex draw : {noise, late_noise}) build.at(draw).seeded = true;
    for (const NodeIndex effect : {log, late_log}) build.at(effect).impure = true;
    Policy policy;
    if (!marks_bind) policy.halves = {[](const JointNode&) { return false; }, [](const JointNode&) { return false; }};
    const Partition partition = extract(build.graph({y}, {gradient}), {x}, {}, policy, false);
    EXPECT_EQ(partition.forward.ops, (std::vector<NodeIndex>{noise, log, y}));
    EXPECT_EQ(partition.backward.ops, (std::vector<NodeIndex>{late_noise, late_log, gradient}));
  }
}

TEST(Extract, DrawsOfTheForwardStayThereWhoeverUsesThem) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex y = build.call("aten::cos", {x}, 400), noise = build.call("aten::rand_like", {x}, 400);
  build.begin_backward();
  const NodeIndex late_noise = build.call("aten::rand_like", {x}, 400);
  const NodeIndex mul = build.call("aten::mul", {tangent, noise}, 400),
                  gradient = build.call("aten::mul", {mul, late_noise}, 400);
  const Partition partition = extract(build.graph({y}, {gradient}), {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.ops), (Names{"cos", "rand_like"}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"rand_like", "rand_like_1", "mul", "mul_1"}));
  EXPECT_EQ(names_of(partition.graph, partition.replayed), (Names{"rand_like"}));
}

TEST(Extract, WhatIsOnlyWaitedForIsNotSaved) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), w = build.primal(400), tangent = build.tangent(400);
  const NodeIndex reduced = build.call("_c10d_functional::all_reduce", {x}, 400),
                  waited = build.call("_c10d_functional::wait_tensor", {reduced}, 400);
  build.at(waited).impure = true;
  const NodeIndex gradient = build.call("aten::mul", {tangent, w}, 400);
  const Partition partition = extract(build.graph({waited}, {gradient}), {reduced, w}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.saved), (Names{"primals_2"}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"mul"}));
}

TEST(Extract, CallsThatWriteStayInTheirHalf) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex y = build.call("aten::cos", {x}, 400);
  const NodeIndex forward_write = build.call("aten::copy_", {x, y}, 400);
  const NodeIndex gradient = build.call("aten::mul", {tangent, x}, 400);
  const NodeIndex backward_write = build.call("aten::copy_", {x, gradient}, 400);
  build.at(forward_write).writes = build.at(backward_write).writes = true;
  build.at(forward_write).impure = build.at(backward_write).impure = true;
  build.at(backward_write).mark = JointMark::IsBackward;
  const Partition partition = extract(build.graph({y}, {gradient}), {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.ops), (Names{"cos", "copy_"}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.ops), (Names{"mul", "copy__1"}));
}

TEST(Extract, AWriteOfTheBackwardAmongTheForwardOutputsIsItsTarget) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex y = build.call("aten::cos", {x}, 400);
  const NodeIndex gradient = build.call("aten::mul", {tangent, x}, 400);
  const NodeIndex write = build.call("aten::copy_", {x, gradient}, 400);
  build.at(write).writes = build.at(write).impure = true;
  build.at(write).mark = JointMark::MustBeInBackward;
  const JointGraph graph = build.graph({write, y}, {gradient});
  const Partition partition = extract(graph, {x}, {}, Policy(), false);
  EXPECT_EQ(names_of(partition.graph, partition.forward.outputs), (Names{"primals_1", "cos", "primals_1"}));
}

TEST(Extract, SymbolsInTheShapesOfWhatCrossesAreBound) {
  JointGraphBuilder build;
  const auto symbolic_primal = [&](const char* symbol) {
    const NodeIndex node = build.primal(0);
    build.at(node).out = {.kind = JointResult::Kind::Scalar, .dtype = types::Dtype::Int64, .scalar = {4, symbol}};
    build.at(node).binds = symbol;
    build.at(node).free_symbols = {symbol};
    return node;
  };
  const NodeIndex rows = symbolic_primal("s0"), columns = symbolic_primal("s1"), x = build.primal(400),
                  tangent = build.tangent(400);
  const NodeIndex twice = build.integer("operator::mul", {rows}, 8);
  const NodeIndex y = build.call("aten::view", {x, twice}, 400);
  const NodeIndex gradient = build.call("aten::view", {tangent, twice}, 400);
  build.at(x).free_symbols = {"s0", "s1"};
  build.at(tangent).free_symbols = {"s0"};
  build.at(twice).free_symbols = {"s0"};
  const NodeIndex product = build.call("aten::mul", {gradient, x}, 400);
  const Partition partition =
      extract(build.graph({y}, {kNoNode, kNoNode, product}), {x}, {columns, twice}, Policy(), false);
  // `columns` is unused and dropped; `twice` needs s0, x also needs s1. Binding symbols come before derived ones.
  EXPECT_EQ(partition.saved_symbols, (std::vector<NodeIndex>{rows, columns, twice}));
  EXPECT_EQ(partition.backward.inputs, (std::vector<NodeIndex>{rows, columns, twice, x, tangent}));
  EXPECT_EQ(partition.forward.outputs, (std::vector<NodeIndex>{y, x, rows, columns, twice}));
  EXPECT_EQ(names_of(partition.graph, partition.backward.outputs), (Names{"None", "None", "mul_1"}));
}

TEST(Extract, SeedsGoToTheHalfTheyBelongTo) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), forward_seed = build.primal(400), backward_seed = build.primal(400),
                  tangent = build.tangent(400);
  build.at(forward_seed).kind = JointKind::ForwardSeed;
  build.at(backward_seed).kind = JointKind::BackwardSeed;
  const NodeIndex y = build.call("aten::mul", {x, forward_seed}, 400);
  const NodeIndex gradient = build.call("aten::mul", {tangent, backward_seed}, 400);
  const Partition partition = extract(build.graph({y}, {gradient}), {x}, {}, Policy(), false);
  EXPECT_EQ(partition.forward.inputs, (std::vector<NodeIndex>{x, forward_seed}));
  EXPECT_EQ(partition.backward.inputs, (std::vector<NodeIndex>{tangent, backward_seed}));
}

TEST(Extract, RandomCallsThatRunTwiceAreReplayed) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex noise = build.call("aten::rand_like", {x}, 400), other = build.call("aten::rand_like", {x}, 400);
  build.at(noise).seeded = build.at(other).seeded = true;
  const NodeIndex y = build.call("aten::mul", {x, noise}, 400), z = build.call("aten::mul", {y, other}, 400);
  const NodeIndex gradient = build.call("aten::mul", {tangent, noise}, 400),
                  gradient_1 = build.call("aten::mul", {gradient, other}, 400);
  const JointGraph graph = build.graph({z}, {gradient_1});
  EXPECT_EQ(extract(graph, {x, other}, {}, Policy(), false).replayed, (std::vector<NodeIndex>{noise}));
  EXPECT_EQ(extract(graph, {x}, {}, Policy(), false).replayed, (std::vector<NodeIndex>{noise, other}));
  EXPECT_EQ(extract(graph, {noise, other}, {}, Policy(), false).replayed, std::vector<NodeIndex>());
}

TEST(Extract, AttentionWithoutDropoutDrawsNothing) {
  const auto replayed = [](double dropout, bool written) {
    JointGraphBuilder build;
    const NodeIndex x = build.primal(400), tangent = build.tangent(400);
    const NodeIndex y = build.call("aten::_scaled_dot_product_flash_attention_for_cpu", {x, x, x}, 400);
    build.at(y).seeded = true;
    if (written) {
      JointArgument& argument = build.at(y).args.emplace_back();
      argument.kind = JointArgument::Kind::Float;
      argument.real = dropout;
    }
    const NodeIndex gradient = build.call("aten::mul", {tangent, y}, 400);
    return extract(build.graph({y}, {gradient}), {x}, {}, Policy(), false).replayed.size();
  };
  EXPECT_EQ(replayed(0.0, true), 0u);
  EXPECT_EQ(replayed(0.0, false), 0u);
  EXPECT_EQ(replayed(0.5, true), 1u);
}

}  // namespace
}  // namespace plumbline::partition

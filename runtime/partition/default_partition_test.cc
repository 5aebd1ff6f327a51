#include <gtest/gtest.h>

#include "runtime/partition/extract.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/partition/testing/names_of.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;
using testing::names_of;
using Names = std::vector<std::string>;

Partition by_default(const JointGraph& graph, const char* policy) {
  return default_partition(graph, load_policy(policy), {.mode = PartitionMode::Default});
}
using testing::saved_names;
Names saved_symbols(const Partition& partition) { return names_of(partition.graph, partition.saved_symbols); }

/// relu(x), whose backward reads an alias of the result that autograd created in the forward.
struct Relu {
  JointGraphBuilder build;
  NodeIndex x = build.primal(400), tangent = build.tangent(400);
  NodeIndex relu = build.call("relu", {x}, 400), detach = build.view("detach", relu);
  JointGraph graph() {
    build.begin_backward();
    const NodeIndex gradient = build.call("threshold_backward", {tangent, detach}, 400);
    return build.graph({relu}, {gradient});
  }
};

TEST(DefaultPartition, NewerVersionsFollowTheOrderOfTheTrace) {
  const Partition made = by_default(Relu().graph(), "torch-2.15");
  EXPECT_EQ(saved_names(made), (Names{"detach"}));
  EXPECT_EQ(names_of(made.graph, made.forward.ops), (Names{"relu", "detach"}));
  EXPECT_EQ(names_of(made.graph, made.backward.ops), (Names{"threshold_backward"}));
}

TEST(DefaultPartition, TheSeedFollowsTheDataFlow) {
  // No output of the forward needs the alias: the backward makes it from the saved relu.
  const Partition made = by_default(Relu().graph(), "seed");
  EXPECT_EQ(saved_names(made), (Names{"relu"}));
  EXPECT_EQ(names_of(made.graph, made.forward.ops), (Names{"relu"}));
  EXPECT_EQ(names_of(made.graph, made.backward.ops), (Names{"detach", "threshold_backward"}));
}

TEST(DefaultPartition, AGraphWithoutMarksIsCutByItsDataFlow) {
  Relu relu;
  JointGraph graph = relu.graph();
  for (JointNode& node : graph.nodes) node.mark = JointMark::None;
  EXPECT_EQ(saved_names(by_default(graph, "torch-2.15")), (Names{"relu"}));
}

TEST(DefaultPartition, DrawsThatNobodyUsesStayInTheForward) {
  // The second draw must find the generator in the state that the first draw left.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex unused = build.call("rand_like", {x}, 400), used = build.call("rand_like", {x}, 400);
  for (const NodeIndex draw : {unused, used}) build.at(draw).seeded = build.at(draw).impure = true;
  const NodeIndex y = build.call("mul", {x, used}, 400);
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, used}, 400);
  for (const char* policy : {"seed", "torch-2.15"}) {
    const Partition made = by_default(build.graph({y}, {gradient}), policy);
    EXPECT_EQ(names_of(made.graph, made.forward.ops), (Names{"rand_like", "rand_like_1", "mul"})) << policy;
  }
}

TEST(DefaultPartition, AnEffectRunsOnce) {
  // Its input is saved, so the backward could run it too.
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex y = build.call("mm", {x}, 400), log = build.call("own::log", {y}, 400);
  build.at(log).impure = true;
  build.begin_backward();
  const NodeIndex gradient = build.call("mul", {tangent, y}, 400);
  for (const char* policy : {"seed", "torch-2.15"}) {
    const Partition made = by_default(build.graph({y}, {gradient}), policy);
    EXPECT_EQ(names_of(made.graph, made.forward.ops), (Names{"mm", "log"})) << policy;
    EXPECT_EQ(names_of(made.graph, made.backward.ops), (Names{"mul"})) << policy;
  }
}

TEST(DefaultPartition, TheSeedSavesTheResultsOfACallOfSeveral) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), w = build.primal(40), tangent = build.tangent(400);
  const std::vector<NodeIndex> norm = build.multi("native_layer_norm", {x, w}, {400, 40, 40});
  const NodeIndex y = build.call("mul", {norm[0], x}, 400);
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, norm[0]}, 400), mul_1 = build.call("mul", {mul, norm[2]}, 400);
  const JointGraph graph = build.graph({y}, {mul_1});
  // Each getitem is listed when its call is reached, before the values that follow it; unused ones are dropped.
  for (const char* policy : {"seed", "torch-2.15"}) {
    const Partition made = by_default(graph, policy);
    EXPECT_EQ(saved_names(made), (Names{"getitem", "getitem_2"})) << policy;
    // getitem_1 is dead in the forward; without raising, getitems keep their place in the trace.
    EXPECT_EQ(names_of(made.graph, made.forward.ops), (Names{"native_layer_norm", "getitem", "getitem_2", "mul"}));
  }
}

TEST(DefaultPartition, SizesAreSavedInPlaceOfTheTensor) {
  for (const char* policy : {"seed", "torch-2.15"}) {
    JointGraphBuilder build;
    const NodeIndex x = build.primal(400), w = build.primal(400), tangent = build.tangent(400);
    const NodeIndex y = build.call("mul", {x, w}, 400), size = build.integer("sym_size", {w}, 10);
    const NodeIndex z = build.call("view", {y, size}, 400);
    build.begin_backward();
    const NodeIndex late_size = build.integer("sym_size", {x}, 10);
    const NodeIndex gradient = build.call("view", {tangent, late_size, size}, 400);
    const Partition made = by_default(build.graph({z}, {gradient}), policy);
    EXPECT_EQ(saved_names(made), Names{}) << policy;
    // x comes first in the graph, and with it the size of x that the backward reads.
    EXPECT_EQ(saved_symbols(made), (Names{"sym_size_1", "sym_size"})) << policy;
    EXPECT_EQ(names_of(made.graph, made.backward.inputs), (Names{"sym_size_1", "sym_size", "tangents_1"})) << policy;
  }
}

TEST(DefaultPartition, OutputsThatTheBackwardReadsAreSavedToo) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400), tangent_2 = build.tangent(400);
  const NodeIndex exp = build.call("exp", {x}, 400), cos = build.call("cos", {exp}, 400);
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, exp}, 400), add = build.call("add", {mul, tangent_2}, 400);
  for (const char* policy : {"seed", "torch-2.15"}) {
    const Partition made = by_default(build.graph({exp, cos}, {add}), policy);
    EXPECT_EQ(names_of(made.graph, made.forward.outputs), (Names{"exp", "cos", "exp"})) << policy;
  }
}

/// x -> cos -> cos_1, a region tagged to be recomputed.
struct Region {
  JointGraphBuilder build;
  NodeIndex x = build.primal(400), tangent = build.tangent(400);
  NodeIndex exp = build.call("exp", {x}, 400), cos = build.call("cos", {exp}, 400),
            cos_1 = build.call("cos", {cos}, 400), y = build.call("exp", {cos_1}, 400);
  JointGraph graph() {
    for (const NodeIndex node : {cos, cos_1}) {
      build.at(node).recompute = CheckpointPolicy::PreferRecompute;
      build.at(node).region = 1;
    }
    build.begin_backward();
    const NodeIndex early = build.call("neg", {exp}, 400), sin = build.call("sin", {cos_1}, 400),
                    mul = build.call("mul", {tangent, sin}, 400), sin_1 = build.call("sin", {cos}, 400),
                    mul_1 = build.call("mul", {mul, sin_1}, 400), mul_2 = build.call("mul", {mul_1, early}, 400);
    return build.graph({y}, {mul_2});
  }
};

TEST(DefaultPartition, TagsAreHonouredAndTheInputsOfARegionSaved) {
  const Partition made = by_default(Region().graph(), "torch-2.15");
  EXPECT_EQ(saved_names(made), (Names{"exp"}));
  EXPECT_EQ(names_of(made.graph, made.recomputed()), (Names{"cos", "cos_1"}));
  // A tagged graph is reordered: `neg` precedes the first call that reads a tangent, so it runs only when needed.
  EXPECT_EQ(names_of(made.graph, made.backward.ops),
            (Names{"cos", "cos_1", "sin", "mul", "sin_1", "mul_1", "neg", "mul_2"}));
}

TEST(DefaultPartition, UntaggedGraphsAreNotReordered) {
  Region region;
  JointGraph graph = region.graph();
  for (JointNode& node : graph.nodes) node.recompute.reset();
  const Partition made = by_default(graph, "torch-2.15");
  EXPECT_EQ(saved_names(made), (Names{"exp", "cos", "cos_1"}));
  EXPECT_EQ(names_of(made.graph, made.backward.ops), (Names{"neg", "sin", "mul", "sin_1", "mul_1", "mul_2"}));
}

TEST(DefaultPartition, WithTagsTheSeedCuts) {
  const Partition made = by_default(Region().graph(), "seed");
  EXPECT_EQ(made.cuts.size(), 1u);
  EXPECT_TRUE(by_default(Relu().graph(), "seed").cuts.empty());
}

TEST(DefaultPartition, MustSaveAndEffectsAreSavedWhereTheBackwardUsesThem) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex effect = build.call("custom::log", {x}, 400), y = build.call("cos", {effect}, 400);
  build.at(effect).impure = true;
  build.begin_backward();
  const NodeIndex sin = build.call("sin", {effect}, 400), mul = build.call("mul", {tangent, sin}, 400);
  const JointGraph graph = build.graph({y}, {mul});
  EXPECT_EQ(saved_names(by_default(graph, "torch-2.15")), (Names{"log"}));
  JointGraph tagged = graph;
  tagged.nodes[effect].recompute = CheckpointPolicy::MustRecompute;
  EXPECT_EQ(testing::refusal([&] { by_default(tagged, "torch-2.15"); }),
            "partition: the graph has recompute tags, and 'log' (custom::log) has effects, which must not be repeated; "
            "remove the tags or partition by min-cut");
}

TEST(DefaultPartition, ARandomCallIsNoEffect) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex noise = build.call("rand_like", {x}, 400), y = build.call("mul", {x, noise}, 400);
  for (const NodeIndex node : {noise, y}) {
    build.at(node).recompute = CheckpointPolicy::PreferRecompute;
    build.at(node).region = 0;
  }
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, noise}, 400);
  const Partition made = by_default(build.graph({y}, {mul}), "torch-2.15");
  EXPECT_EQ(saved_names(made), (Names{"primals_1"}));
  EXPECT_EQ(names_of(made.graph, made.replayed), (Names{"rand_like"}));
}

TEST(DefaultPartition, TaggedGraphsThatWriteAreCut) {
  Region region;
  JointGraph graph = region.graph();
  graph.nodes[region.exp].op = "custom::update_";
  graph.nodes[region.exp].writes = graph.nodes[region.exp].impure = true;
  EXPECT_EQ(by_default(graph, "torch-2.15").cuts.size(), 1u);
}

TEST(DefaultPartition, AResultThatIsNoTensorIsRefusedByName) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const std::vector<NodeIndex> parts = build.split(x, 2);
  const NodeIndex whole = build.call("custom::pack", {parts[0] - 1}, 400);
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, x}, 400);
  const JointGraph graph = build.graph({whole, parts[0]}, {mul});
  for (const char* policy : {"seed", "torch-2.15"})
    EXPECT_EQ(
        testing::refusal([&] { by_default(graph, policy); }),
        "partition: the result of 'split' (aten::split) is neither a tensor nor a tuple used only by getitems, so it "
        "cannot be saved")
        << policy;
}

TEST(DefaultPartition, DeadCollectivesGo) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex y = build.call("cos", {x}, 400);
  const NodeIndex reduced = build.call("_c10d_functional::all_reduce", {y}, 400),
                  waited = build.call("_c10d_functional::wait_tensor", {reduced}, 400);
  build.at(waited).impure = true;
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, x}, 400);
  const Partition made = by_default(build.graph({y}, {mul}), "torch-2.15");
  EXPECT_EQ(names_of(made.graph, made.forward.ops), (Names{"cos"}));
  EXPECT_EQ(names_of(made.graph, made.backward.ops), (Names{"mul"}));
  EXPECT_EQ(saved_names(made), (Names{"primals_1"}));
}

}  // namespace
}  // namespace plumbline::partition

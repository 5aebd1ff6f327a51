// Plans by peak: the model's prediction equals the simulation of its partition, and plans keep their limits.
#include "runtime/partition/budget/peak_plan.h"

#include <gtest/gtest.h>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/budget/peak_model.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/large_joint_graphs.h"
#include "runtime/partition/testing/prepared_graph.h"
#include "runtime/partition/testing/random_joint_graph.h"
#include "runtime/testing/in_full.h"

namespace plumbline::partition {
namespace {

using testing::PreparedGraph;

/// The cost of all recomputed calls; views and getitems cost nothing.
double recompute_of(const Partition& partition) {
  double sum = 0;
  for (const NodeIndex node : partition.recomputed())
    if (!partition.graph.nodes[node].view && partition.graph.nodes[node].kind == JointKind::Call)
      sum += partition.graph.nodes[node].flops;
  return sum;
}

const testing::RandomJointOptions kPlain{
    .forward_calls = 12, .backward_calls = 12, .views = 0.35, .multi = 0.2, .flops = true};
const testing::RandomJointOptions kWithAll{.forward_calls = 12,
                                           .backward_calls = 12,
                                           .seeded = 0.2,
                                           .unclaimed = 0.3,
                                           .effects = 0.12,
                                           .scalars = 0.1,
                                           .unmarked = 0.15,
                                           .bound = 0.05,
                                           .flops = true};

void compare_with_simulation(const testing::RandomJointOptions& of, unsigned graphs) {
  int forbidden = 0;
  for (unsigned seed = 0; seed < graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const PreparedGraph p(testing::random_joint_graph(random, of));
    PeakModel model(p.input);
    for (int choice = 0; choice < 4; ++choice) {
      std::vector<char> saved(p.graph.nodes.size(), 0);
      std::vector<NodeIndex> nodes;
      for (size_t i = 0; i < saved.size(); ++i) {
        saved[i] = choice == 0 || (choice > 1 && random() % 2 == 0);
        // Without it the backward could not be built.
        if (p.graph.nodes[i].mark == JointMark::MustBeInForward || p.graph.nodes[i].writes) saved[i] = 1;
        if (p.graph.nodes[i].kind == JointKind::GetItem && saved[p.edges.inputs(i)[0]]) saved[i] = 1;
        const bool input = p.graph.nodes[i].kind == JointKind::Primal;
        if (input || (saved[i] && model.savable()[i])) nodes.push_back(static_cast<NodeIndex>(i));
      }
      const PeakModel::Answer answer = model.ask(saved);
      const Partition partition = p.divided(nodes);
      ASSERT_EQ(answer.peak, simulate_memory(partition).peak) << testing::to_text(p.graph);
      ASSERT_EQ(answer.recompute, recompute_of(partition)) << testing::to_text(p.graph);
      ASSERT_GE(answer.peak, model.floor()) << testing::to_text(p.graph);
      bool twice = false;
      for (const NodeIndex node : partition.recomputed()) twice |= p.graph.nodes[node].op == "own::effect";
      ASSERT_EQ(answer.allowed, !twice) << testing::to_text(p.graph);
      forbidden += twice;
    }
  }
  EXPECT_EQ(forbidden > 0, of.effects > 0);
}

TEST(PeakModel, SaysWhatSimulatingThePartitionSays) { compare_with_simulation(kPlain, 1500); }

TEST(PeakModel, SaysSoWithEffectsDrawsNumbersAndMarksOfBothHalves) {
  compare_with_simulation(kWithAll, testing::in_full_or_sample(10000, 2500));
}

TEST(PeakModel, TheFloorOfTheBackwardStandsBesideAllOutputsOnce) {
  testing::JointGraphBuilder build;
  const NodeIndex x = build.primal(16), tangent = build.tangent(16);
  std::vector<NodeIndex> outputs;
  for (int i = 0; i < 3000; ++i) outputs.push_back(build.call("sin", {x}, 16));
  build.begin_backward();
  NodeIndex gradient = tangent;
  for (const NodeIndex output : outputs) gradient = build.call("mul", {gradient, output}, 16);
  const PreparedGraph p(build.graph(outputs, {gradient}));
  // All outputs, the previous gradient and the new one.
  EXPECT_EQ(PeakModel(p.input).floor(), (3000 + 2) * 16);
}

void plans_keep_their_limits(testing::RandomJointOptions of, unsigned graphs) {
  of.forward_calls = of.backward_calls = 30;
  of.tags = 0.1;
  of.bound = 0;  // a node both bound to the forward and tagged to be recomputed has no plan
  for (unsigned seed = 0; seed < graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const PreparedGraph p(testing::random_joint_graph(random, of));
    double before = INFINITY;
    int64_t least = -1;
    for (const double budget : {0., 0.1, 0.3, 0.6, 1.}) {
      PartitionOptions options;
      options.mode = PartitionMode::Budget;
      options.measure = BudgetMeasure::Peak;
      options.budget = budget;
      const PeakPlan plan = plan_by_peak(p.input, options);
      EXPECT_LE(plan.floor, plan.least);
      EXPECT_LE(plan.least, plan.most);
      EXPECT_LE(plan.peak, plan.limit);
      EXPECT_TRUE(least < 0 || plan.least == least);
      least = plan.least;
      const Partition partition = p.divided(plan.saved);
      EXPECT_EQ(plan.peak, simulate_memory(partition).peak);
      EXPECT_EQ(plan.recompute, recompute_of(partition));
      EXPECT_TRUE(budget < 1 || plan.recompute <= before);
      before = plan.recompute;
      for (const NodeIndex node : partition.recomputed())
        EXPECT_TRUE(p.graph.nodes[node].recompute != CheckpointPolicy::MustSave &&
                    p.graph.nodes[node].op != "own::effect");
      for (const NodeIndex node : plan.saved) EXPECT_FALSE(must_recompute(p.graph.nodes[node]));
    }
  }
}

TEST(PeakPlan, StaysWithinItsLimitAndWithinTheSimulatedPeak) {
  plans_keep_their_limits({.flops = true}, 150);
  plans_keep_their_limits(kWithAll, 150);
}

int64_t peak_of(const JointGraph& graph, const char* mode) {
  return simulate_memory(partition(graph, load_policy("torch-2.15"), parse_partition_mode(mode))).peak;
}

TEST(PeakPlan, AFullBudgetTakesNoMoreThanTheDefaultMode) {
  // A mask a quarter of the size of its argument: eager mode computes it in the forward and keeps only the mask.
  testing::JointGraphBuilder build;
  const NodeIndex x = build.primal(400), tangent = build.tangent(400);
  const NodeIndex mm = build.call("mm", {x}, 400), y = build.call("relu", {mm}, 400),
                  mask = build.call("gt", {mm}, 100);
  build.begin_backward();
  const NodeIndex gradient = build.call("where", {tangent, mask}, 400);
  const JointGraph graph = build.graph({y}, {gradient});
  EXPECT_EQ(peak_of(graph, "default"), 400 + 400 + 400 + 100);
  EXPECT_EQ(peak_of(graph, "budget=1:peak"), peak_of(graph, "default"));
}

TEST(PeakPlan, OfEightTransformerBlocksTakesLessThanTwentyEightHundredths) {
  const PreparedGraph p(testing::transformer_joint_graph({}));
  std::vector<double> recompute;
  for (const double budget : {0., 0.05, 0.1, 0.25, 0.5, 1.}) {
    PartitionOptions options;
    options.mode = PartitionMode::Budget;
    options.measure = BudgetMeasure::Peak;
    options.budget = budget;
    const PeakPlan plan = plan_by_peak(p.input, options);
    const double share = static_cast<double>(plan.peak) / static_cast<double>(plan.most);
    EXPECT_TRUE(budget > 0.1 || share <= 0.28);
    EXPECT_LE(plan.peak, plan.limit);
    EXPECT_TRUE(recompute.empty() || plan.recompute <= recompute.back());
    recompute.push_back(plan.recompute);
  }
  EXPECT_EQ(recompute.back(), 0);
}

TEST(PeakPlan, OfAChainIsNearTheRootOfItsLength) {
  // 400 equal values: with a checkpoint every 20 the peak is about 2 * 20 of them instead of 400.
  const PreparedGraph p(testing::chain_joint_graph(400));
  PartitionOptions options;
  options.mode = PartitionMode::Budget;
  options.measure = BudgetMeasure::Peak;
  options.budget = 0;
  const PeakPlan plan = plan_by_peak(p.input, options);
  EXPECT_GT(plan.most, 400 * 4096);
  EXPECT_LT(plan.peak, 46 * 4096);
}

}  // namespace
}  // namespace plumbline::partition

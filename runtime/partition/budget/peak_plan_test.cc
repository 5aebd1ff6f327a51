// Plans by peak: what the model says of a choice is what simulating its partition says; plans keep their limits.
#include "runtime/partition/budget/peak_plan.h"

#include <gtest/gtest.h>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/budget/peak_model.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/reorder.h"
#include "runtime/partition/testing/large_joint_graphs.h"
#include "runtime/partition/testing/random_joint_graph.h"

namespace plumbline {
namespace {

/// A graph with all that a plan asks for.
struct Prepared {
  explicit Prepared(JointGraph made)
      : graph(std::move(made)),
        edges(edges_of(graph)),
        policy(load_policy("torch-2.15")),
        ops(classify_ops(graph, policy)),
        classes(classify_nodes(graph, edges, policy, {})),
        input{graph, edges, policy, ops, classes} {}

  /// Forward and backward for these saved values, by the functions that partition() uses.
  Partition divided(const std::vector<NodeIndex>& saved) const {
    Partition partition;
    partition.graph = graph;
    divide(partition, edges, saved, {}, policy);
    order_calls(partition, edges, policy, Reordering::KeepsEffects);
    return partition;
  }

  JointGraph graph;
  JointEdges edges;
  Policy policy;
  OpClasses ops;
  NodeClasses classes;
  CutInput input;
};

/// Runtimes of what runs twice; views and getitems are no work.
double recompute_of(const Partition& partition) {
  double sum = 0;
  for (const NodeIndex node : partition.recomputed())
    if (!partition.graph.nodes[node].view && partition.graph.nodes[node].kind == JointKind::Call)
      sum += partition.graph.nodes[node].flops;
  return sum;
}

TEST(PeakModel, SaysWhatSimulatingThePartitionSays) {
  for (unsigned seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Prepared p(testing::random_joint_graph(
        random, {.forward_calls = 12, .backward_calls = 12, .views = 0.35, .multi = 0.2, .flops = true}));
    PartitionOptions options;
    PeakModel model(p.input, options);
    for (int choice = 0; choice < 4; ++choice) {
      std::vector<char> saved(p.graph.nodes.size(), 0);
      std::vector<NodeIndex> nodes;
      for (size_t i = 0; i < saved.size(); ++i) {
        saved[i] = choice == 0 || (choice > 1 && random() % 2 == 0);
        const bool input = p.graph.nodes[i].kind == JointKind::Primal;
        if (input || (saved[i] && model.savable()[i])) nodes.push_back(static_cast<NodeIndex>(i));
      }
      const PeakModel::Answer answer = model.ask(saved);
      const Partition partition = p.divided(nodes);
      ASSERT_EQ(answer.peak, simulate_memory(partition).peak) << testing::to_text(p.graph);
      ASSERT_EQ(answer.recompute, recompute_of(partition)) << testing::to_text(p.graph);
      ASSERT_GE(answer.peak, model.floor());
    }
  }
}

TEST(PeakPlan, StaysWithinItsLimitAndWithinTheSimulatedPeak) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Prepared p(
        testing::random_joint_graph(random, {.forward_calls = 30, .backward_calls = 30, .tags = 0.1, .flops = true}));
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
        EXPECT_NE(p.graph.nodes[node].recompute, CheckpointPolicy::MustSave);
      for (const NodeIndex node : plan.saved) EXPECT_FALSE(must_recompute(p.graph.nodes[node]));
    }
  }
}

TEST(PeakPlan, OfEightTransformerBlocksTakesLessThanTwentyEightHundredths) {
  const Prepared p(testing::transformer_joint_graph({}));
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
  // 400 equal values: with a checkpoint every 20 the peak is some 2 * 20 of them, instead of 400.
  const Prepared p(testing::chain_joint_graph(400));
  PartitionOptions options;
  options.mode = PartitionMode::Budget;
  options.measure = BudgetMeasure::Peak;
  options.budget = 0;
  const PeakPlan plan = plan_by_peak(p.input, options);
  EXPECT_GT(plan.most, 400 * 4096);
  EXPECT_LT(plan.peak, 46 * 4096);
}

}  // namespace
}  // namespace plumbline

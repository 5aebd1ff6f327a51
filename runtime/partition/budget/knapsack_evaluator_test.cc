#include "runtime/partition/budget/knapsack_evaluator.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/error.h"

namespace plumbline::partition {
namespace {

// The graph of PyTorch's test_ac_knapsack.py: node1 to node5 in a chain, node1 and node5 are returned. Its candidates
// are node1, node2 and node5: numbers 0, 1, 2.
KnapsackGraph chain(std::vector<double> memories, std::vector<double> runtimes) {
  return {.nodes = 5,
          .edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}},
          .candidates = {0, 1, 4},
          .memories = std::move(memories),
          .runtimes = std::move(runtimes)};
}
KnapsackGraph plain() { return chain({1, 1, 1}, {1, 1, 1}); }
KnapsackGraph priced() { return chain({0.1, 0.2, 0.2}, {100, 50, 51}); }

// --- TestGraphInfoProvider -------------------------------------------------------------------------------------------

JointGraph joint_chain() {
  JointGraph graph;
  for (int i = 1; i <= 5; ++i) {
    JointNode node{.name = "node" + std::to_string(i), .kind = i == 1 ? JointKind::Primal : JointKind::Call};
    if (i > 1) node.args.push_back({.kind = JointArgument::Kind::Node, .node = i - 2});
    graph.nodes.push_back(node);
  }
  graph.outputs = {4, 0};
  graph.num_forward_outputs = 1;
  return graph;
}

TEST(GraphInfoProvider, inialize_from_graph) {
  const std::vector<NodeIndex> candidates{0, 1, 4};
  const KnapsackGraph graph = knapsack_graph(joint_chain(), candidates, {1, 1, 1}, {1, 1, 1});
  EXPECT_EQ(graph.nodes, 5);
  EXPECT_EQ(graph.edges, plain().edges);
  EXPECT_EQ(graph.candidates, plain().candidates);
}

TEST(GraphInfoProvider, get_non_ac_peak_memory) { EXPECT_EQ(plain().memory_of_all(), 3); }
TEST(GraphInfoProvider, get_theoretical_max_runtime) { EXPECT_EQ(plain().runtime_of_all(), 3); }

TEST(GraphInfoProvider, get_knapsack_inputs) {
  const std::vector<NodeIndex> candidates{0, 1, 4};
  const KnapsackGraph graph = knapsack_graph(joint_chain(), candidates, {1, 2, 3}, {4, 5, 6});
  EXPECT_EQ(graph.memories, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(graph.runtimes, (std::vector<double>{4, 5, 6}));
}

TEST(GraphInfoProvider, recomputable_node_only_graph) { EXPECT_EQ(candidate_edges(plain()), (CandidateEdges{{0, 1}})); }

TEST(GraphInfoProvider, recomputable_node_only_graph_with_larger_graph_context) {
  EXPECT_EQ(candidate_edges_in_context(plain()), (CandidateEdges{{0, 1}, {1, 2}}));
}

// The joint graph has no node for its outputs, so that there is nothing to drop.
TEST(GraphInfoProvider, full_joint_nx_graph) {
  const std::vector<NodeIndex> candidates{0, 1, 4};
  const KnapsackGraph graph = knapsack_graph(joint_chain(), candidates, {1, 1, 1}, {1, 1, 1});
  EXPECT_EQ(graph.edges, (std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

TEST(GraphInfoProvider, simplified_fx_joint_graph) {
  const JointGraph graph = joint_chain();
  const JointEdges edges = edges_of(graph);
  EXPECT_TRUE(edges.is_output[0] && edges.is_output[4] && !edges.is_output[2]);
}

// A way past a candidate is no edge where another way leads through one.
TEST(GraphInfoProvider, ContextLeavesOutWhatFollows) {
  const KnapsackGraph graph{.nodes = 6,
                            .edges = {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {2, 4}, {4, 5}},
                            .candidates = {4, 0, 2, 5},
                            .memories = {1, 1, 1, 1},
                            .runtimes = {1, 1, 1, 1}};
  EXPECT_EQ(candidate_edges_in_context(graph), (CandidateEdges{{0, 3}, {1, 2}, {2, 0}}));
}

// --- TestKnapsackEvaluator -------------------------------------------------------------------------------------------

KnapsackChoice keep(std::vector<int> items) { return {.value = 0, .kept = std::move(items)}; }

KnapsackChoice recorded_solver(const KnapsackProblem& problem) {
  static const std::map<double, std::vector<int>> kept{
      {0.1, {0}}, {0.2, {0}}, {0.3, {0, 2}}, {0.4, {0, 2}}, {0.5, {0, 1, 2}}};
  const auto it = kept.find(problem.capacity);
  return keep(it == kept.end() ? std::vector<int>{0, 1, 2} : it->second);
}

TEST(KnapsackEvaluator, evaluate_knapsack_output_not_accounting_for_backward_pass) {
  const KnapsackEvaluation result = evaluate(priced(), keep({0}));
  EXPECT_EQ(result.peak_memory, 0.1);
  EXPECT_EQ(result.recomputation_runtime, 101);
}

TEST(KnapsackEvaluator, evaluate_knapsack_output_accounting_for_backward_pass) {
  const KnapsackEvaluation result = evaluate(priced(), keep({0}), true);
  EXPECT_EQ(result.peak_memory, 0.5);
  EXPECT_EQ(result.recomputation_runtime, 101);
}

TEST(KnapsackEvaluator, evaluate_knapsack_output_with_wrong_sized_values) {
  EXPECT_THROW(evaluate(priced(), keep({0, 3})), InputError);
  EXPECT_THROW(evaluate(priced(), keep({-1})), InputError);
  EXPECT_THROW(evaluate(priced(), keep({1, 1})), InputError);
}

TEST(KnapsackEvaluator, evaluate_distribution_of_results_for_knapsack_algo) {
  const std::vector<double> capacities{0.1, 0.2, 0.3};
  const std::vector<KnapsackEvaluation> results = evaluate_capacities(priced(), recorded_solver, capacities);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].capacity, 0.1);
  EXPECT_EQ(results[0].peak_memory, 0.1);
  EXPECT_EQ(results[0].recomputation_runtime, 101);
  EXPECT_EQ(priced().memory_of_all(), 0.5);
  EXPECT_EQ(priced().runtime_of_all(), 201);
  EXPECT_DOUBLE_EQ(results[2].shares.memory, 0.3 / 0.5);
  EXPECT_DOUBLE_EQ(results[2].shares.recomputation, 50.0 / 201);
}

TEST(KnapsackEvaluator, get_knee_point_memory_budget) {
  const std::map<double, double> expected{{0.1, 0.1}, {0.2, 0.1}, {0.3, 0.3}, {0.4, 0.4}, {0.5, 0.4}};
  for (const auto& [most, knee] : expected)
    EXPECT_EQ(knee_capacity(priced(), recorded_solver, most, 0.1, 5), knee) << "up to " << most;
}

TEST(KnapsackEvaluator, get_backward_memory_from_topologically_sorted_graph) {
  const std::vector<std::string> names{"node1", "node2", "node5"};
  const std::vector<std::pair<double, std::string>> expected{{0.1, "Initial Peak/Current Memory"},
                                                             {0.3, "Recomputing Node: node5"},
                                                             {0.5, "Recomputing Predecessor of node5: node2"},
                                                             {0.3, "Dropping Node: node5"},
                                                             {0.1, "Dropping Node(already saved): node2"},
                                                             {0.0, "Dropping Node(already saved): node1"}};
  const std::vector<BackwardMemory> steps = backward_memory(priced(), {1, 0, 0});
  ASSERT_EQ(steps.size(), expected.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(steps[i].memory, expected[i].first, 1e-12) << i;
    EXPECT_EQ(steps[i].describe(names), expected[i].second);
  }
}

// What is saved is not made again, although what is made reads it: after the last step nothing is held.
TEST(KnapsackEvaluator, SavedInputsOfWhatIsComputedAgainStay) {
  const std::vector<BackwardMemory> steps = backward_memory(chain({1, 2, 4}, {1, 1, 1}), {0, 1, 0});
  EXPECT_EQ(steps.front().memory, 2);
  EXPECT_EQ(steps.back().memory, 0);
  EXPECT_EQ(evaluate(chain({1, 2, 4}, {1, 1, 1}), keep({1}), true).peak_memory, 6);
}

}  // namespace
}  // namespace plumbline::partition

// Partitioning at the size of large models: graphs of about 100 000 nodes, in nodes per second.
#include <benchmark/benchmark.h>

#include <random>

#include "runtime/partition/budget/budget.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/budget/peak_plan.h"
#include "runtime/partition/cut/min_bytes.h"
#include "runtime/partition/testing/large_joint_graphs.h"
#include "runtime/partition/testing/prepared_graph.h"

namespace plumbline::bench {
namespace {

using Case = testing::PreparedGraph;

const Case& of_shape(int64_t shape) {
  if (shape == 0) {
    static const Case transformer(
        testing::transformer_joint_graph({.blocks = 800, .batch = 8, .length = 128, .width = 64}));
    return transformer;
  }
  if (shape == 1) {
    static const Case chain(testing::chain_joint_graph(33'333));
    return chain;
  }
  static const Case dag([] {
    std::mt19937 random(1);
    return testing::random_dag_joint_graph(25'000, random);
  }());
  return dag;
}

void count_nodes(benchmark::State& state, const Case& of) {
  state.counters["nodes"] = static_cast<double>(of.graph.nodes.size());
}

/// Edges, classes, and one minimum cut by the policy's rules.
void partition_cut(benchmark::State& state) {
  const Case& of = of_shape(state.range(0));
  for (auto _ : state) {
    const partition::JointEdges edges = partition::edges_of(of.graph);
    const partition::OpClasses ops = partition::classify_ops(of.graph, of.policy);
    const partition::NodeClasses classes = partition::classify_nodes(of.graph, edges, of.policy, ops, {});
    benchmark::DoNotOptimize(partition::min_cut({of.graph, edges, of.policy, ops, classes}, of.policy.bans).saved);
  }
  count_nodes(state, of);
}

void partition_bytes_cut(benchmark::State& state) {
  const Case& of = of_shape(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(partition::min_bytes_cut(of.input).saved);
  count_nodes(state, of);
}

/// The whole plan for a budget (in thousandths): up to four cuts and a knapsack, with edges and classes.
void partition_budget(benchmark::State& state) {
  const Case& of = of_shape(state.range(0));
  partition::PartitionOptions options;
  options.mode = partition::PartitionMode::Budget;
  options.budget = static_cast<double>(state.range(1)) / 1000;
  for (auto _ : state) {
    const partition::JointEdges edges = partition::edges_of(of.graph);
    const partition::OpClasses ops = partition::classify_ops(of.graph, of.policy);
    const partition::NodeClasses classes = partition::classify_nodes(of.graph, edges, of.policy, ops, {});
    std::vector<partition::CutRecord> cuts;
    benchmark::DoNotOptimize(
        partition::saved_within_budget({of.graph, edges, of.policy, ops, classes}, options, cuts).data());
  }
  count_nodes(state, of);
}

void partition_peak_plan(benchmark::State& state) {
  const Case& of = of_shape(state.range(0));
  partition::PartitionOptions options;
  options.mode = partition::PartitionMode::Budget;
  options.measure = partition::BudgetMeasure::Peak;
  options.budget = static_cast<double>(state.range(1)) / 1000;
  partition::PeakPlan plan;
  for (auto _ : state) plan = partition::plan_by_peak(of.input, options);
  count_nodes(state, of);
  state.counters["peak_share"] = static_cast<double>(plan.peak) / static_cast<double>(plan.most);
}

/// Extracts the forward and backward graphs of the minimum cut, in autograd's order.
void partition_extract(benchmark::State& state) {
  const Case& of = of_shape(state.range(0));
  const std::vector<partition::NodeIndex> saved = partition::min_cut(of.input, of.policy.bans).saved;
  partition::Partition partition;
  partition.graph = of.graph;
  for (auto _ : state) {
    partition::divide(partition, of.edges, saved, {}, of.policy);
    partition::order_calls(partition, of.edges, of.policy, partition::Reordering::AsPyTorch);
  }
  count_nodes(state, of);
}

void partition_simulate_memory(benchmark::State& state) {
  const Case& of = of_shape(state.range(0));
  const partition::Partition partition =
      partition::extract(of.graph, partition::min_cut(of.input, of.policy.bans).saved, {}, of.policy, true);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        partition::simulate_memory(partition.graph, of.edges, partition.forward, partition.backward).peak);
  count_nodes(state, of);
}

// shape: 0 transformer, 1 chain, 2 random graph with a fifth of its calls banned. budget: in thousandths.
void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"shape"})->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
}
void shapes_and_budgets(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"shape", "budget"})->ArgsProduct({{0, 1, 2}, {100, 500}})->Unit(benchmark::kMillisecond);
}
BENCHMARK(partition_cut)->Apply(shapes);
BENCHMARK(partition_bytes_cut)->Apply(shapes);
BENCHMARK(partition_budget)->Apply(shapes_and_budgets);
BENCHMARK(partition_peak_plan)->Apply(shapes_and_budgets);
BENCHMARK(partition_extract)->Apply(shapes);
BENCHMARK(partition_simulate_memory)->Apply(shapes);

}  // namespace
}  // namespace plumbline::bench

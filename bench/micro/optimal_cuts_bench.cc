// The optimal partition of long graphs, for cut sequences of random costs.
#include <benchmark/benchmark.h>

#include <random>

#include "runtime/split/policy/optimal_cuts.h"

namespace plumbline::bench {
namespace {

void optimal_cuts_of_nodes(benchmark::State& state) {
  std::mt19937 random(1);
  std::vector<double> costs(static_cast<size_t>(state.range(0)));
  for (double& cost : costs) cost = random() % 1000;
  const std::vector<char> legal(costs.size() + 1, 1);
  for (auto _ : state) benchmark::DoNotOptimize(split::optimal_cuts(costs, legal, static_cast<int>(state.range(1))));
}

BENCHMARK(optimal_cuts_of_nodes)->ArgNames({"nodes", "stages"})->Args({10000, 16})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plumbline::bench

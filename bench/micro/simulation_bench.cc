// The simulator at the size of large machines: time per step, and bytes per action, the schedule included.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::bench {
namespace {

/// Bytes currently allocated, in arenas and in separate mappings.
double allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

/// Measures memory in the middle of a run: the simulator queries costs per group of actions, so rank 0's last two
/// actions are made one group.
double bytes_while_running(schedule::Schedule schedule, schedule::StepCosts costs) {
  double most = 0;
  auto& actions = schedule.ranks[0];
  actions[actions.size() - 2].overlaps_next = true;
  costs.group_time = [&](const schedule::StepCosts&, std::span<const schedule::Action>, double sum) {
    most = std::max(most, allocated_bytes());
    return sum;
  };
  schedule::simulate_step(schedule, schedule::chain_edges(schedule.stages), costs);
  return most;
}

/// `skipping`: each stage makes a tensor for its mirror image, as in a U-Net.
void simulate(benchmark::State& state, bool skipping) {
  const double before = allocated_bytes();
  const schedule::Schedule schedule =
      schedule::make_schedule("1f1b", static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  const std::vector<schedule::StageEdge> edges = schedule::chain_edges(schedule.stages);
  schedule::StepCosts costs;
  costs.durations[0].comm = 0.1;
  for (int from = 0, to = schedule.stages - 1; skipping && from < to; ++from, --to) {
    costs.skips.push_back({.edge = {from, to}, .bytes = 1});
  }
  for (auto _ : state) benchmark::DoNotOptimize(schedule::simulate_step(schedule, edges, costs).timeline.makespan);
  const auto actions = static_cast<double>(schedule::action_count(schedule));
  const double of_schedule = allocated_bytes() - before;
  // The copy that runs has no spare capacity, so its exact size is counted.
  const double while_running = bytes_while_running(schedule, costs) - before - of_schedule;
  state.counters["ns_per_action"] = benchmark::Counter(actions * static_cast<double>(state.iterations()),
                                                       benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_action"] = while_running / actions;
}

void simulate_1f1b(benchmark::State& state) { simulate(state, false); }
void simulate_1f1b_with_skips(benchmark::State& state) { simulate(state, true); }

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"ranks", "microbatches"})->Args({64, 256})->Args({16384, 256})->Unit(benchmark::kMillisecond);
}

BENCHMARK(simulate_1f1b)->Apply(sizes);
BENCHMARK(simulate_1f1b_with_skips)->Apply(sizes);

}  // namespace
}  // namespace plumbline::bench

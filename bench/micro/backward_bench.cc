// The cost of running a stage's backward in two halves: input gradients, then weight gradients.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>

#include "bench/micro/backward_times.h"
#include "runtime/median.h"

namespace plumbline::bench {
namespace {

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

/// An iteration is a pair; its time is that of the two halves. Counters: split over full, as the median of the pairs
/// and from the shortest times, and the medians of the full backward and of each half.
void backward(benchmark::State& state, const ModelShape& model) {
  at::set_num_threads(static_cast<int>(state.range(0)));
  BackwardStage stage(model);
  check_halves(stage);
  BackwardTimes times;
  for (auto _ : state) {
    measure_pair(stage, times);
    state.SetIterationTime(times.input.back() + times.weight.back());
  }
  at::set_num_threads(1);
  state.counters["ratio"] = times.ratio();
  state.counters["ratio_of_min"] = least(times.split()) / least(times.full);
  state.counters["full_us"] = 1e6 * median(times.full);
  state.counters["input_us"] = 1e6 * median(times.input);
  state.counters["weight_us"] = 1e6 * median(times.weight);
}

[[maybe_unused]] const bool registered = [] {
  for (const ModelShape& model : backward_models())
    benchmark::RegisterBenchmark(("backward/" + to_string(model)).c_str(),
                                 [model](benchmark::State& state) { backward(state, model); })
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(2)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace plumbline::bench

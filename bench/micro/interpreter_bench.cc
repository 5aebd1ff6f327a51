// The cost of interpreting a graph compared with calling the module it was captured from.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "bench/micro/transformer_step.h"
#include "runtime/clock.h"
#include "runtime/median.h"

namespace plumbline::bench {
namespace {

/// Alternates the sides within each iteration, so that disturbances affect both; the time of an iteration is the
/// interpreter's. Counters: the median of the paired ratios, and each side's shortest time.
void compare(benchmark::State& state, at::Tensor (TransformerStep::*run)(Side)) {
  TransformerStep step;
  const auto seconds_of = [&](Side side) {
    const auto begin = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize((step.*run)(side));
    return seconds_since(begin);
  };
  std::vector<double> ratios, module, interpreter;
  bool module_first = true;
  for (auto _ : state) {
    for (const Side side :
         module_first ? std::array{Side::Module, Side::Interpreter} : std::array{Side::Interpreter, Side::Module})
      (side == Side::Module ? module : interpreter).push_back(seconds_of(side));
    module_first = !module_first;
    ratios.push_back(interpreter.back() / module.back());
    state.SetIterationTime(interpreter.back());
  }
  const double module_min = *std::min_element(module.begin(), module.end());
  const double interpreter_min = *std::min_element(interpreter.begin(), interpreter.end());
  state.counters["ratio"] = median(ratios);
  state.counters["ratio_of_min"] = interpreter_min / module_min;
  state.counters["module_us"] = 1e6 * median(module);
  state.counters["module_min_us"] = 1e6 * module_min;
  state.counters["interpreter_min_us"] = 1e6 * interpreter_min;
  state.counters["nodes"] = static_cast<double>(step.node_count());
}

void interpreter_forward_backward(benchmark::State& state) { compare(state, &TransformerStep::forward_backward); }
void interpreter_forward(benchmark::State& state) { compare(state, &TransformerStep::forward); }

BENCHMARK(interpreter_forward_backward)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(interpreter_forward)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plumbline::bench

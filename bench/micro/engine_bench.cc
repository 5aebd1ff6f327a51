// What the engine and the transport cost for each action: a step of stages that do nothing.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include "runtime/engine/emulated_stage.h"
#include "runtime/schedule/orders/generators.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/threads.h"

namespace plumbline::bench {
namespace {

constexpr int kMicrobatches = 64, kSteps = 20;

/// 1F1B on state.range(0) ranks as threads. An iteration is some steps; the counter is the time of one forward or
/// backward of one rank, its transfers included.
void engine_threads(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  for (auto _ : state) {
    double seconds = 0;
    transport::run_thread_ranks(ranks, [&](transport::Transport& transport) {
      at::set_num_threads(1);
      engine::Engine engine(transport, schedule::make_schedule("1f1b", ranks, kMicrobatches),
                            engine::emulated_pipe(ranks), engine::emulated_options(0, 0));
      const at::Tensor batch = at::zeros({kMicrobatches, 16});
      engine.train({batch}, {});  // captures and meets its peers
      transport::barrier(transport, transport::Deadline::never());
      const transport::Clock::time_point begin = transport::Clock::now();
      for (int i = 0; i < kSteps; ++i) engine.train({batch}, {});
      if (transport.rank() == 0) seconds = std::chrono::duration<double>(transport::Clock::now() - begin).count();
    });
    state.SetIterationTime(seconds);
  }
  using benchmark::Counter;
  state.counters["per_action"] =
      Counter(kSteps * 2 * kMicrobatches, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

BENCHMARK(engine_threads)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plumbline::bench

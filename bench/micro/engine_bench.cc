// The cost of engine and transport per action, in time and in memory allocations: steps of stages that compute nothing.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include "bench/micro/heap_count.h"
#include "runtime/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/stage/emulated_stage.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::bench {
namespace {

constexpr int kMicrobatches = 64, kSteps = 20;

/// 1F1B on state.range(0) ranks as threads. An iteration is several steps; the counter is the time of one forward or
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
      engine.train({batch}, {});  // captures and connects to its peers
      transport::barrier(transport, transport::Deadline::after(transport::from_seconds(600)));
      const transport::Clock::time_point begin = transport::Clock::now();
      for (int i = 0; i < kSteps; ++i) engine.train({batch}, {});
      if (transport.rank() == 0) seconds = seconds_since(begin);
    });
    state.SetIterationTime(seconds);
  }
  using benchmark::Counter;
  state.counters["per_action"] =
      Counter(kSteps * 2 * kMicrobatches, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

BENCHMARK(engine_threads)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Computes nothing, and always returns the same two tensors.
class IdleStage : public engine::StageRunner {
 public:
  void forward(int, std::span<const at::Tensor>, std::vector<at::Tensor>& outputs) override {
    outputs.assign(1, output_);
  }
  void backward(int, std::span<const at::Tensor>, std::span<const at::Tensor>, std::span<const at::Tensor> inputs,
                std::vector<at::Tensor>& input_grads) override {
    input_grads.assign(1, inputs[0].requires_grad() ? grad_ : at::Tensor());
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_weight(int) override {}
  void drop_halves() noexcept override {}

 private:
  const at::Tensor output_ = at::zeros({1, 16}).requires_grad_(true), grad_ = at::zeros({1, 16});
};

/// Memory allocations of rank 0 in a step after the first steps, per forward, backward or backward half, including
/// those of the transfers and of the step itself. state.range(0) ranks as threads, state.range(1) micro-batches, so
/// that the one-time cost of a step shows as the difference.
void engine_allocations(benchmark::State& state, const char* schedule) {
  const int ranks = static_cast<int>(state.range(0)), microbatches = static_cast<int>(state.range(1));
  double ours = 0, of_torch = 0, actions = 0;
  for (auto _ : state) {
    transport::run_thread_ranks(ranks, [&](transport::Transport& transport) {
      at::set_num_threads(1);
      engine::EngineOptions options = engine::emulated_options(0, 0);
      const at::Tensor loss = at::zeros({}).requires_grad_(true);
      options.loss = [loss](const std::vector<at::Tensor>&, const at::Tensor&) { return loss; };
      options.decorate = [](int, const split::StageState&, std::unique_ptr<engine::StageRunner>) {
        return std::make_unique<IdleStage>();
      };
      const schedule::Schedule made = schedule::make_schedule(schedule, ranks, microbatches);
      engine::Engine engine(transport, made, engine::emulated_pipe(ranks), options);
      microbatch::Microbatches batch;
      for (int m = 0; m < microbatches; ++m) batch.inputs.push_back({at::zeros({1, 16})});
      for (int i = 0; i < 3; ++i) engine.train(batch);
      transport::barrier(transport, transport::Deadline::after(transport::from_seconds(600)));
      const HeapCount count;
      for (int i = 0; i < kSteps; ++i) engine.train(batch);
      if (transport.rank() != 0) return;
      ours += static_cast<double>(count.requests());
      of_torch += static_cast<double>(count.of_torch());
      actions += kSteps * static_cast<double>(made.ranks[0].size());
    });
  }
  state.counters["per_action"] = ours / actions;
  state.counters["torch_per_action"] = of_torch / actions;
}

BENCHMARK_CAPTURE(engine_allocations, 1f1b, "1f1b")->Args({1, 16})->Args({1, 64})->Args({2, 16})->Args({2, 64});
BENCHMARK_CAPTURE(engine_allocations, zero_bubble, "zb-h1")->Args({2, 16})->Args({2, 64});

}  // namespace
}  // namespace plumbline::bench

// Skips sent directly from the stage that makes them to the one that pops them, compared with skips passed from stage
// to stage: time of a step, bytes sent, peak memory of a rank. The models have 2k nearly empty parts; part i stashes
// for part 2k-1-i, as in a U-Net with skips of one size.
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <benchmark/benchmark.h>

#include <mutex>

#include "runtime/capture/pipe_modules.h"
#include "runtime/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/skip/skippable.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/allocation_count.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/forwarding_transport.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::bench {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int kStages = 8, kMicrobatches = 8, kSteps = 3;
constexpr int64_t kHandedOn = 64;  // floats that a part passes to the next

class Down : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.stash = {"skip"}};
  explicit Down(int64_t floats) : weight_(register_parameter("weight", at::ones({floats / kHandedOn, 1}))) {}
  skip::SkipForward<> forward(at::Tensor x) {
    co_yield stash("skip", at::mul(x, weight_));  // [floats / handed on, handed on]
    co_return at::mul(x, 0.5);
  }

 private:
  at::Tensor weight_;
};

class Up : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.pop = {"skip"}};
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor skip = co_yield pop("skip");
    co_return at::add(x, at::sum(skip, {0}, /*keepdim=*/true), 0.01);
  }
};

Sequence nested_skips(int64_t floats) {
  Sequence model;
  std::vector<skip::SkipNamespace> pairs(kStages / 2);
  for (const skip::SkipNamespace& pair : pairs) model->push_back(skip::skippable<Down>(floats)->isolate(pair));
  for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair)
    model->push_back(skip::skippable<Up>()->isolate(*pair));
  return model;
}

class Counted : public transport::ForwardingTransport {
 public:
  using transport::ForwardingTransport::ForwardingTransport;
  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    sent += static_cast<int64_t>(bytes);
    return inner_.isend(data, bytes, peer, tag);
  }
  int64_t sent = 0;
};

/// 1F1B on threads. state.range(0): bytes of a skip; state.range(1): 1 for hop by hop.
void skips(benchmark::State& state) {
  const int64_t floats = state.range(0) / 4;
  const split::Route route = state.range(1) ? split::Route::Neighbours : split::Route::Direct;
  std::mutex mutex;
  int64_t sent = 0, peak = 0;
  for (auto _ : state) {
    double seconds = 0;
    sent = peak = 0;
    transport::run_thread_ranks(kStages, [&](transport::Transport& transport) {
      at::set_num_threads(1);
      Sequence model = nested_skips(floats);
      std::vector<split::SplitPoint> points;
      for (int i = 1; i < kStages; ++i) points.push_back({std::to_string(i)});
      const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
        return split::make_pipe({model.get(), [&](const Tensors& in) { return Tensors{model->forward(in[0])}; }, {"x"}},
                                inputs, training, {.points = points, .route = route});
      };
      engine::EngineOptions options;
      options.input_names = {"x"};
      options.input_chunks = {microbatch::ChunkSpec{}};
      options.loss = [](const Tensors& outputs, const at::Tensor&) { return at::sum(outputs[0]); };
      Counted counted(transport);
      engine::Engine engine(counted, schedule::make_schedule("1f1b", kStages, kMicrobatches), source, options);
      const at::Tensor batch = at::ones({kMicrobatches, kHandedOn});
      engine.train({batch}, {});  // captures and connects to its peers
      transport::barrier(transport, transport::Deadline::after(transport::from_seconds(600)));
      const testing::AllocationCount allocated;
      counted.sent = 0;
      const transport::Clock::time_point begin = transport::Clock::now();
      for (int i = 0; i < kSteps; ++i) engine.train({batch}, {});
      const std::lock_guard<std::mutex> lock(mutex);
      sent += counted.sent / kSteps;
      peak = std::max(peak, allocated.peak());
      seconds = std::max(seconds, seconds_since(begin) / kSteps);
    });
    state.SetIterationTime(seconds);
  }
  state.SetLabel(route == split::Route::Direct ? "direct" : "hop by hop");
  state.counters["sent_MB"] = static_cast<double>(sent) / 1e6;
  state.counters["peak_MB"] = static_cast<double>(peak) / 1e6;
}

BENCHMARK(skips)
    ->ArgNames({"bytes", "hops"})
    ->ArgsProduct({{1 << 14, 1 << 18, 1 << 22}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plumbline::bench

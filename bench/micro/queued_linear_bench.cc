// How much time a backward in halves saves with one node per linear layer (runtime/backward/queued_linear.h).
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>

#include "runtime/backward/queued_linear.h"
#include "runtime/backward/split/split_backward.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/clock.h"
#include "runtime/median.h"

namespace plumbline::bench {
namespace {

enum Way { kFull, kHalves, kQueuedFull, kQueuedHalves, kWays };

class Mlp {
 public:
  Mlp(int64_t rows, int64_t width, int layers) : x_(at::randn({rows, width}).requires_grad_()) {
    for (int i = 0; i < layers; ++i) {
      weights_.push_back(at::randn({width, width}).div_(8).requires_grad_());
      biases_.push_back(at::randn({width}).requires_grad_());
    }
  }

  /// Seconds per backward, without the forward.
  double backward(Way way) {
    std::vector<at::Tensor> outputs = {x_}, made;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const at::Tensor h = way == kFull || way == kHalves
                               ? at::linear(outputs[0], weights_[i], biases_[i])
                               : backward::queued_linear(outputs[0], weights_[i], biases_[i]);
      outputs[0] = at::relu(h);
    }
    const std::vector<at::Tensor> grads = {at::ones_like(outputs[0].detach())};
    backward::WeightBackward weights;
    const auto begin = std::chrono::steady_clock::now();
    if (way == kFull || way == kQueuedFull) {
      backward::stage_backward(outputs, grads, {&x_, 1}, made);
    } else {
      backward::stage_backward_input(outputs, grads, {&x_, 1}, made, weights, {.accumulate_into_inputs = false});
      backward::stage_backward_weight(weights);
    }
    return seconds_since(begin);
  }

 private:
  at::Tensor x_;
  std::vector<at::Tensor> weights_, biases_;
};

/// The variants alternate within each iteration, so that disturbances affect all of them. Counters: medians, and
/// medians of the paired ratios.
void queued_linear_backward(benchmark::State& state) {
  Mlp mlp(state.range(0), state.range(1), static_cast<int>(state.range(2)));
  std::array<std::vector<double>, kWays> seconds;
  std::vector<double> split, queued, gain;
  int first = 0;
  for (auto _ : state) {
    for (int i = 0; i < kWays; ++i) {
      const Way way = static_cast<Way>((first + i) % kWays);
      seconds[way].push_back(mlp.backward(way));
    }
    ++first;
    split.push_back(seconds[kHalves].back() / seconds[kFull].back());
    queued.push_back(seconds[kQueuedHalves].back() / seconds[kFull].back());
    gain.push_back(seconds[kHalves].back() / seconds[kQueuedHalves].back());
    state.SetIterationTime(seconds[kQueuedHalves].back());
  }
  state.counters["full_us"] = 1e6 * median(seconds[kFull]);
  state.counters["halves_us"] = 1e6 * median(seconds[kHalves]);
  state.counters["queued_full_us"] = 1e6 * median(seconds[kQueuedFull]);
  state.counters["queued_halves_us"] = 1e6 * median(seconds[kQueuedHalves]);
  state.counters["halves_over_full"] = median(split);
  state.counters["queued_over_full"] = median(queued);
  state.counters["halves_over_queued"] = median(gain);
}

BENCHMARK(queued_linear_backward)
    ->ArgNames({"rows", "width", "layers"})
    ->Args({16, 16, 8})
    ->Args({64, 64, 8})
    ->Args({64, 128, 8})
    ->Args({128, 256, 8})
    ->Args({512, 1024, 6})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plumbline::bench

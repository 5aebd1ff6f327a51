// The cost of capturing a long forward, and of splitting it into eight stages.
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <benchmark/benchmark.h>

#include "reference/models/parts/layers.h"
#include "runtime/capture/capture.h"
#include "runtime/split/split.h"

namespace plumbline::bench {
namespace {

constexpr int kStages = 8;

/// `nodes` calls on one small tensor, every second one with a parameter.
class Chain : public torch::nn::Module {
 public:
  explicit Chain(int64_t nodes) : nodes_(nodes), weight_(register_parameter("weight", at::ones({4}))) {}
  at::Tensor forward(at::Tensor x) {
    for (int64_t i = 0; i < nodes_; ++i) x = i % 2 ? at::tanh(x) : at::add(x, weight_);
    return x;
  }

 private:
  int64_t nodes_;
  at::Tensor weight_;
};

class Chains : public torch::nn::Module {
 public:
  explicit Chains(int64_t nodes) : parts_(register_module("parts", std::make_shared<models::ChildList<Chain>>())) {
    for (int i = 0; i < kStages; ++i) parts_->add(nodes / kStages);
  }
  at::Tensor forward(const at::Tensor& x) { return parts_->in_turn(x); }

 private:
  std::shared_ptr<models::ChildList<Chain>> parts_;
};

graph::Graph capture_chains(Chains& module) {
  return capture::capture(module, [&](const std::vector<at::Tensor>& in) { return std::vector{module.forward(in[0])}; },
                          {{"x", at::ones({4})}});
}

/// Only the forward, with gradients: it is part of the time of a capture.
void capture_forward_alone(benchmark::State& state) {
  Chains module(state.range(0));
  const at::Tensor x = at::ones({4});
  for (auto _ : state) benchmark::DoNotOptimize(module.forward(x));
}

void capture_graph(benchmark::State& state) {
  Chains module(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(capture_chains(module));
}

void split_graph(benchmark::State& state) {
  Chains module(state.range(0));
  const graph::Graph graph = capture_chains(module);
  split::SplitOptions options;
  options.points = split::choose_split_points(models::later_children("parts", kStages), kStages);
  options.route = state.range(1) == 0 ? split::Route::Direct : split::Route::Neighbours;
  options.multi_use = state.range(1) == 0 ? split::MultiUse::Replicate : split::MultiUse::Transmit;
  for (auto _ : state) benchmark::DoNotOptimize(split::split(graph, options));
}

BENCHMARK(capture_forward_alone)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(capture_graph)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(split_graph)
    ->ArgNames({"calls", "hop by hop"})
    ->Args({1000, 0})
    ->Args({10000, 0})
    ->Args({10000, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plumbline::bench

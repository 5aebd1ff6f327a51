#include "bench/peers/pipeline_round.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <nlohmann/json.hpp>

#include "bench/peers/measured_steps.h"
#include "runtime/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/io/write_file.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/split/module_pipe.h"
#include "runtime/transport/collectives.h"

namespace plumbline::bench {
namespace {

constexpr int kWarmUpSteps = 3;
constexpr std::chrono::seconds kTimeout{60};

std::vector<split::SplitPoint> even_points(int64_t layers, int stages) {
  std::vector<split::SplitPoint> points;
  for (int stage = 1; stage < stages; ++stage)
    points.push_back({.module = "layers." + std::to_string(layers / stages * stage)});
  return points;
}

TensorMap gradients_of(const engine::Engine& engine) {
  TensorMap gradients;
  for (const auto& [stage, state] : engine.states())
    for (const auto& [name, parameter] : state.parameters) gradients.emplace(name, graph::to_host(parameter.grad()));
  return gradients;
}

}  // namespace

at::Tensor sum_of_products(const at::Tensor& output, const at::Tensor& target) {
  return at::sum(at::mul(output, target));
}

void run_pipeline_round(const PipelineRound& round, transport::Transport& transport, const std::filesystem::path& out) {
  using Clock = std::chrono::steady_clock;
  FilledModel model(round.model);
  const at::Tensor inputs = fill(round.model.sizes(round.microbatches), /*stream=*/0, kActivationExponent, 0);
  const at::Tensor target = fill(round.model.sizes(round.microbatches), /*stream=*/1, kActivationExponent, 0);
  for (const std::string& name : round.schedules) {
    const schedule::Schedule schedule = schedule::make_schedule(name, transport.size(), round.microbatches);
    split::SplitOptions split;
    split.points = even_points(round.model.layers, schedule.stages);
    engine::EngineOptions options;
    options.input_names = {"x"};
    options.input_chunks = {microbatch::ChunkSpec{}};
    options.loss = [](const std::vector<at::Tensor>& outputs, const at::Tensor& of) {
      return sum_of_products(outputs[0], of);
    };
    options.divide_by_microbatches = false;
    options.timeout = kTimeout;
    const split::ModelHandle handle{
        &model, [&](const std::vector<at::Tensor>& in) { return std::vector{model.forward(in[0])}; }, {"x"}};
    engine::Engine engine(
        transport, schedule,
        [&](bool training, const std::vector<at::Tensor>& in) { return split::make_pipe(handle, in, training, split); },
        options);
    std::vector<double> seconds, processor;
    for (int i = 0; i < kWarmUpSteps + round.steps; ++i) {
      engine.zero_grad();
      transport::barrier(transport, transport::Deadline::after(kTimeout));
      const Clock::time_point begin = Clock::now();
      const double processor_begin = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
      engine.train({inputs}, target);
      if (i < kWarmUpSteps) continue;
      seconds.push_back(seconds_since(begin));
      processor.push_back(processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - processor_begin);
    }
    write_file(steps_file(out, name, transport.rank(), ".json"),
               nlohmann::json{{"seconds", seconds}, {"processor_seconds", processor}}.dump());
    write_tensor_file(steps_file(out, name, transport.rank(), ".safetensors"), gradients_of(engine));
  }
}

}  // namespace plumbline::bench

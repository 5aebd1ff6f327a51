#include "runtime/engine/stage/emulated_stage.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <time.h>

#include <cerrno>

namespace plumbline::engine {
namespace {

/// Until `milliseconds` from now, on an absolute clock so that late wake-ups do not accumulate.
void sleep_for(double milliseconds) {
  if (milliseconds <= 0) return;  // even a sleep until a past time costs a timer
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t nanoseconds = until.tv_nsec + static_cast<int64_t>(milliseconds * 1e6);
  until.tv_sec += nanoseconds / 1'000'000'000;
  until.tv_nsec = nanoseconds % 1'000'000'000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

class EmulatedStage : public StageRunner {
 public:
  explicit EmulatedStage(const EmulatedTimes& times) : times_(times) {}

  void forward(int, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    sleep_for(times_.forward_ms);
    outputs.assign(1, zeros_like(inputs[0], output_, /*requires_grad=*/true));
  }
  void backward(int, std::span<const at::Tensor>, std::span<const at::Tensor>, std::span<const at::Tensor> inputs,
                std::vector<at::Tensor>& input_grads) override {
    sleep_for(times_.input_ms + times_.weight_ms);
    input_grads.assign(1, zeros_like(inputs[0], grad_, /*requires_grad=*/false));
  }
  void backward_input(int, std::span<const at::Tensor>, std::span<const at::Tensor>, std::span<const at::Tensor> inputs,
                      std::vector<at::Tensor>& input_grads) override {
    sleep_for(times_.input_ms);
    input_grads.assign(1, zeros_like(inputs[0], grad_, /*requires_grad=*/false));
  }
  void backward_weight(int) override { sleep_for(times_.weight_ms); }
  void drop_halves() noexcept override {}

 private:
  /// The same zeros for every micro-batch of this shape, so that the stage itself costs nothing.
  static const at::Tensor& zeros_like(const at::Tensor& input, at::Tensor& zeros, bool requires_grad) {
    if (!zeros.defined() || zeros.sizes() != input.sizes() || zeros.dtype() != input.dtype())
      zeros = at::zeros_like(input).detach().requires_grad_(requires_grad);
    return zeros;
  }

  EmulatedTimes times_;
  at::Tensor output_, grad_;
};

}  // namespace

PipeSource emulated_pipe(int stages) {
  return [stages](bool, const std::vector<at::Tensor>& inputs) {
    split::Pipe pipe;
    pipe.stages.resize(stages);
    const graph::Value value{inputs.at(0).scalar_type(), inputs.at(0).sizes().vec(), /*requires_grad=*/true, -1};
    for (int s = 0; s < stages; ++s) {
      graph::Graph& graph = pipe.stages[s].graph;
      const graph::ValueId id = graph.add_value(value);
      graph.inputs.push_back({s == 0 ? "x" : "v" + std::to_string(s - 1), id});
      graph.outputs.push_back(id);
      if (s > 0) pipe.stages[s].inputs.push_back(s - 1);
      if (s + 1 == stages) continue;
      pipe.stages[s].outputs.push_back(s);
      pipe.boundaries.push_back({"v" + std::to_string(s), value, s, 0, {{s + 1, 0}}, /*has_gradient=*/true});
    }
    return pipe;
  };
}

EngineOptions emulated_options(const EmulatedTimes& times) {
  EngineOptions options;
  options.input_names = {"x"};
  options.input_chunks = {microbatch::ChunkSpec{}};
  options.loss = [loss = at::zeros({}).requires_grad_(true)](const std::vector<at::Tensor>&, const at::Tensor&) {
    return loss;
  };
  options.decorate = [=](int, const split::StageState&, std::unique_ptr<StageRunner>) {
    return std::make_unique<EmulatedStage>(times);
  };
  return options;
}

}  // namespace plumbline::engine

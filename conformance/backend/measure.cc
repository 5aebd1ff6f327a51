#include "conformance/backend/measure.h"

#include <time.h>
#include <torch/nn/module.h>

#include <nlohmann/json.hpp>

#include "conformance/backend/predicted_trace.h"
#include "conformance/corpus/corpus.h"
#include "reference/loss.h"
#include "reference/models/zoo.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/stage/emulated_stage.h"
#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/split/module_pipe.h"
#include "runtime/transport/clock_offset.h"
#include "runtime/transport/collectives.h"

namespace plumbline::conformance {
namespace {

constexpr int kWarmUpSteps = 1;

/// Seconds for which this thread had a processor. Where ranks share cores, a wall clock would also count the time in
/// which a rank had work to do and another one its core.
double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Adds the processor time of its scope to a sum.
class ProcessorWatch {
 public:
  explicit ProcessorWatch(double& sum) : sum_(sum), begin_(processor_seconds()) {}
  ~ProcessorWatch() { sum_ += processor_seconds() - begin_; }
  ProcessorWatch(const ProcessorWatch&) = delete;
  ProcessorWatch& operator=(const ProcessorWatch&) = delete;

 private:
  double& sum_;
  double begin_;
};

class WatchedStage : public engine::ForwardingRunner {
 public:
  WatchedStage(std::unique_ptr<engine::StageRunner> stage, double& sum)
      : ForwardingRunner(std::move(stage)), sum_(sum) {}
  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    const ProcessorWatch watch(sum_);
    ForwardingRunner::forward(microbatch, inputs, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const ProcessorWatch watch(sum_);
    ForwardingRunner::backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const ProcessorWatch watch(sum_);
    ForwardingRunner::backward_input(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_weight(int microbatch) override {
    const ProcessorWatch watch(sum_);
    ForwardingRunner::backward_weight(microbatch);
  }

 private:
  double& sum_;
};

/// What one rank measured.
struct Measured {
  std::vector<engine::StepTimes> steps;
  std::vector<schedule::TimedAction> trace;  ///< of the last step, if asked for
};

/// `busy`, where given, is a running sum that takes the place of the engine's own time in stages.
Measured run_steps(engine::Engine& engine, const models::Batch& batch, int steps, transport::Transport& transport,
                   transport::Clock::duration timeout, const double* busy = nullptr) {
  Measured measured;
  for (int i = 0; i < kWarmUpSteps + steps; ++i) {
    transport::barrier(transport, transport::Deadline::after(timeout));
    engine.zero_grad();
    const double busy_before = busy ? *busy : 0;
    engine::StepResult step = engine.train(batch.inputs, batch.target);
    if (i < kWarmUpSteps) continue;
    measured.steps.push_back(step.times);
    if (busy) measured.steps.back().busy = *busy - busy_before;
    measured.trace = std::move(step.trace);
  }
  return measured;
}

Measured measure_sleeping(const JobThroughput& item, transport::Transport& transport,
                          transport::Clock::duration timeout) {
  const schedule::Schedule schedule = schedule::make_schedule(item.schedule, transport.size(), item.microbatches);
  const schedule::Durations durations = sleeping_durations(item, schedule);
  engine::EngineOptions options = engine::emulated_options(durations.forward, *durations.backward);
  options.timeout = timeout;
  options.trace = item.trace;
  engine::Engine engine(transport, schedule, engine::emulated_pipe(schedule.stages), options);
  return run_steps(engine, {{at::zeros({item.microbatches, 16})}, {}}, item.steps, transport, timeout);
}

/// As in the corpus, so that a model is measured with the loss it is judged with.
reference::LossSpec loss_of(const std::string& model) {
  for (const reference::Case& c : corpus())
    if (c.model == model) return c.loss;
  throw InputError("throughput: no case of the corpus has model '" + model + "'");
}

Measured measure_model(const JobThroughput& item, const Job& job, transport::Transport& transport,
                       transport::Clock::duration timeout) {
  const models::Model model = models::make_model(item.model, reference::Dtype::F32, job.seed);
  const models::Batch batch = models::make_batch(item.model, reference::Dtype::F32, item.rows, job.seed, 0);
  split::SplitOptions split;
  const schedule::Schedule schedule = schedule::make_schedule(item.schedule, transport.size(), item.microbatches);
  split.points = models::stage_points(model, schedule.stages);
  split.loss_outputs = std::vector<int>{0};
  engine::EngineOptions options;
  options.input_names = model.input_names;
  options.input_chunks = model.input_chunks;
  options.timeout = timeout;
  options.trace = item.trace;
  double busy = 0;
  const reference::LossSpec loss = loss_of(item.model);
  options.loss = [loss, &busy](const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
    const ProcessorWatch watch(busy);
    return reference::compute_loss(loss, outputs, target);
  };
  options.mean_loss = loss.reduction == reference::Reduction::Mean;
  options.decorate = [&busy](int, const split::StageState&, std::unique_ptr<engine::StageRunner> stage) {
    return std::make_unique<WatchedStage>(std::move(stage), busy);
  };
  engine::Engine engine(
      transport, schedule,
      [&](bool training, const std::vector<at::Tensor>& inputs) {
        return split::make_pipe({model.module.get(), model.forward, model.input_names}, inputs, training, split);
      },
      options);
  return run_steps(engine, batch, item.steps, transport, timeout, &busy);
}

}  // namespace

std::string measure_on_rank(const JobThroughput& item, const Job& job, transport::Transport& transport) {
  const transport::Clock::duration timeout = transport::from_seconds(job.timeout_seconds);
  const Measured measured =
      item.model.empty() ? measure_sleeping(item, transport, timeout) : measure_model(item, job, transport, timeout);
  // Ranks on several hosts have several clocks; the readers of the times compare them.
  const double early =
      transport::correction(transport::measure_clock_offset(transport, transport::Deadline::after(timeout)));
  nlohmann::json steps = nlohmann::json::array(), trace = nlohmann::json::array();
  for (const engine::StepTimes& t : measured.steps)
    steps.push_back({{"begin", t.begin - early}, {"end", t.end - early}, {"busy", t.busy}, {"waiting", t.waiting}});
  for (const schedule::TimedAction& timed : measured.trace)
    trace.push_back({{"action", to_string(timed.action)},
                     {"overlaps_next", timed.action.overlaps_next},
                     {"begin", timed.begin - early},
                     {"end", timed.end - early}});
  return nlohmann::json{{"steps", steps}, {"trace", trace}}.dump() + "\n";
}

}  // namespace plumbline::conformance

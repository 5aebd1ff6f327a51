#include "conformance/backend/measure.h"

#include <torch/nn/module.h>

#include <map>
#include <nlohmann/json.hpp>

#include "conformance/backend/predicted_trace.h"
#include "conformance/corpus/corpus.h"
#include "reference/loss.h"
#include "reference/models/zoo.h"
#include "runtime/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/stage/emulated_stage.h"
#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/error.h"
#include "runtime/median.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/allocation_count.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/forwarding_transport.h"
#include "runtime/transport/machine/clock_offset.h"
#include "runtime/transport/machine/own_cores.h"

namespace plumbline::conformance {
namespace {

constexpr int kWarmUpSteps = 3;

/// Adds the processor time of this thread in its scope to a sum. Where ranks share cores, a wall clock would also count
/// the time in which a rank had work to do and another one its core.
class ProcessorWatch {
 public:
  explicit ProcessorWatch(double& sum) : sum_(sum), begin_(processor_seconds(CLOCK_THREAD_CPUTIME_ID)) {}
  ~ProcessorWatch() { sum_ += processor_seconds(CLOCK_THREAD_CPUTIME_ID) - begin_; }
  ProcessorWatch(const ProcessorWatch&) = delete;
  ProcessorWatch& operator=(const ProcessorWatch&) = delete;

 private:
  double& sum_;
  double begin_;
};

/// Adds up the time of posting messages: what communication costs a rank besides waiting.
class WatchedTransport : public transport::ForwardingTransport {
 public:
  using transport::ForwardingTransport::ForwardingTransport;
  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    return timed([&] { return ForwardingTransport::isend(data, bytes, peer, tag); });
  }
  transport::Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    return timed([&] { return ForwardingTransport::irecv(data, bytes, peer, tag); });
  }
  double posting() const { return posting_; }

 private:
  transport::Request timed(const auto& post) {
    const transport::Clock::time_point begin = transport::Clock::now();
    const transport::Request request = post();
    posting_ += seconds_since(begin);
    return request;
  }
  double posting_ = 0;
};

/// What the stages of a rank have in common.
struct Watched {
  double busy = 0;                             ///< a running sum of processor time
  testing::AllocationCount* memory = nullptr;  ///< not null in the step whose memory is counted
  std::map<int, int64_t> activations;          ///< by stage: bytes that its first forward in that step leaves
};

class WatchedStage : public engine::ForwardingRunner {
 public:
  WatchedStage(std::unique_ptr<engine::StageRunner> stage, int index, Watched& watched)
      : ForwardingRunner(std::move(stage)), index_(index), watched_(watched) {}
  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    const ProcessorWatch watch(watched_.busy);
    const int64_t before = watched_.memory ? watched_.memory->alive() : 0;
    ForwardingRunner::forward(microbatch, inputs, outputs);
    if (watched_.memory) watched_.activations.try_emplace(index_, watched_.memory->alive() - before);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const ProcessorWatch watch(watched_.busy);
    ForwardingRunner::backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const ProcessorWatch watch(watched_.busy);
    ForwardingRunner::backward_input(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_weight(int microbatch) override {
    const ProcessorWatch watch(watched_.busy);
    ForwardingRunner::backward_weight(microbatch);
  }

 private:
  int index_;
  Watched& watched_;
};

/// The durations of computations, by stage and type, in seconds.
using Durations = std::map<std::pair<int, schedule::ActionType>, std::vector<double>>;

/// What one rank measured.
struct Measured {
  std::vector<engine::StepTimes> steps;
  std::vector<double> posting;               ///< by step
  std::vector<schedule::TimedAction> trace;  ///< of the last step
  Durations durations;                       ///< of all steps
  nlohmann::json memory;                     ///< null for stages that sleep
};

/// `busy`, where given, is a running sum that takes the place of the engine's own time in stages.
Measured run_steps(engine::Engine& engine, const models::Batch& batch, int steps, WatchedTransport& transport,
                   transport::Clock::duration timeout, const double* busy = nullptr) {
  Measured measured;
  for (int i = 0; i < kWarmUpSteps + steps; ++i) {
    engine.zero_grad();
    transport::barrier(transport, transport::Deadline::after(timeout));
    const double busy_before = busy ? *busy : 0, posting_before = transport.posting();
    engine::StepResult step = engine.train(batch.inputs, batch.targets);
    if (i < kWarmUpSteps) continue;
    measured.steps.push_back(step.times);
    measured.posting.push_back(transport.posting() - posting_before);
    if (busy) measured.steps.back().busy = *busy - busy_before;
    for (const schedule::TimedAction& timed : step.trace)
      if (schedule::is_compute(timed.action.type))
        measured.durations[{timed.action.stage, timed.action.type}].push_back(timed.end - timed.begin);
    measured.trace = std::move(step.trace);
  }
  return measured;
}

Measured measure_sleeping(const JobThroughput& item, WatchedTransport& transport, transport::Clock::duration timeout) {
  const schedule::Schedule schedule = schedule::make_schedule(item.schedule, transport.size(), item.microbatches);
  const schedule::Durations durations = sleeping_durations(item, schedule);
  engine::EngineOptions options = engine::emulated_options(durations.forward, *durations.backward);
  options.timeout = timeout;
  options.trace = true;
  engine::Engine engine(transport, schedule, engine::emulated_pipe(schedule.stages), options);
  return run_steps(engine, {{at::zeros({item.microbatches, 16})}, {}}, item.steps, transport, timeout);
}

/// One more step, not timed: the most bytes of tensors that the rank holds beyond those before the step, what each
/// stage keeps of a micro-batch, and the bytes of its gradients.
nlohmann::json count_memory(engine::Engine& engine, const models::Batch& batch, Watched& watched) {
  engine.zero_grad();
  testing::AllocationCount count;
  watched.memory = &count;
  engine.train(batch.inputs, batch.targets);
  watched.memory = nullptr;
  size_t gradients = 0;
  for (const auto& [stage, state] : engine.states())
    for (const auto& [name, parameter] : state.parameters)
      if (parameter.grad().defined()) gradients += parameter.grad().nbytes();
  nlohmann::json activations = nlohmann::json::array();
  for (const auto& [stage, bytes] : watched.activations) activations.push_back({{"stage", stage}, {"bytes", bytes}});
  return {{"peak", count.peak()}, {"gradients", gradients}, {"activations", activations}};
}

/// As in the corpus, so that a model is measured with the loss it is judged with.
reference::LossSpec loss_of(const std::string& model) {
  for (const reference::Case& c : corpus())
    if (c.model == model) return c.loss;
  throw InputError("throughput: no case of the corpus has model '" + model + "'");
}

Measured measure_model(const JobThroughput& item, const Job& job, WatchedTransport& transport,
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
  options.trace = true;
  Watched watched;
  const reference::LossSpec loss = loss_of(item.model);
  options.loss = [loss, &watched](const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
    const ProcessorWatch watch(watched.busy);
    return reference::compute_loss(loss, outputs, target);
  };
  options.mean_loss = loss.reduction == reference::Reduction::Mean;
  options.decorate = [&watched](int index, const split::StageState&, std::unique_ptr<engine::StageRunner> stage) {
    return std::make_unique<WatchedStage>(std::move(stage), index, watched);
  };
  engine::Engine engine(
      transport, schedule,
      [&](bool training, const std::vector<at::Tensor>& inputs) {
        return split::make_pipe({model.module.get(), model.forward, model.input_names}, inputs, training, split);
      },
      options);
  Measured measured = run_steps(engine, batch, item.steps, transport, timeout, &watched.busy);
  measured.memory = count_memory(engine, batch, watched);
  return measured;
}

}  // namespace

std::string measure_on_rank(const JobThroughput& item, const Job& job, transport::Transport& transport) {
  const transport::Clock::duration timeout = transport::from_seconds(job.timeout_seconds);
  WatchedTransport watched(transport);
  const Measured measured =
      item.model.empty() ? measure_sleeping(item, watched, timeout) : measure_model(item, job, watched, timeout);
  // Ranks on several hosts have several clocks; the readers of the times compare them.
  const double early =
      transport::correction(transport::measure_clock_offset(transport, transport::Deadline::after(timeout)));
  nlohmann::json steps = nlohmann::json::array(), trace = nlohmann::json::array(), durations = nlohmann::json::array();
  for (size_t i = 0; i < measured.steps.size(); ++i) {
    const engine::StepTimes& t = measured.steps[i];
    steps.push_back({{"begin", t.begin - early},
                     {"end", t.end - early},
                     {"busy", t.busy},
                     {"waiting", t.waiting},
                     {"posting", measured.posting[i]}});
  }
  if (item.trace)
    for (const schedule::TimedAction& timed : measured.trace)
      trace.push_back({{"action", to_string(timed.action)},
                       {"overlaps_next", timed.action.overlaps_next},
                       {"begin", timed.begin - early},
                       {"end", timed.end - early}});
  for (const auto& [computation, seconds] : measured.durations)
    durations.push_back({{"stage", computation.first},
                         {"type", std::string(1, "FBIW"[static_cast<size_t>(computation.second)])},
                         {"median", median(seconds)}});
  return nlohmann::json{{"steps", steps},
                        {"trace", trace},
                        {"durations", durations},
                        {"memory", measured.memory},
                        {"cores", transport::own_cores()}}
             .dump() +
         "\n";
}

}  // namespace plumbline::conformance

#include "conformance/run/throughput.h"

#include <time.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "conformance/backend/predicted_trace.h"
#include "conformance/corpus/corpus.h"
#include "conformance/protocol/report_folder.h"
#include "reference/loss.h"
#include "reference/models/zoo.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/stage/emulated_stage.h"
#include "runtime/error.h"
#include "runtime/io/write_text.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulate.h"
#include "runtime/split/module_pipe.h"
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

class WatchedStage : public engine::StageRunner {
 public:
  WatchedStage(std::unique_ptr<engine::StageRunner> stage, double& sum) : stage_(std::move(stage)), sum_(sum) {}
  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    const ProcessorWatch watch(sum_);
    stage_->forward(microbatch, inputs, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const ProcessorWatch watch(sum_);
    stage_->backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const ProcessorWatch watch(sum_);
    stage_->backward_input(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_weight(int microbatch) override {
    const ProcessorWatch watch(sum_);
    stage_->backward_weight(microbatch);
  }
  void drop_halves() noexcept override { stage_->drop_halves(); }

 private:
  std::unique_ptr<engine::StageRunner> stage_;
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

nlohmann::json read_rank(const std::filesystem::path& out, size_t index, int rank) {
  const std::filesystem::path path = throughput_path(out, index, rank);
  std::ifstream in(path);
  if (!in) throw Error("no measurement from rank " + std::to_string(rank) + " (" + path.string() + ")");
  return nlohmann::json::parse(in);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void measure_on_rank(const JobThroughput& item, const Job& job, transport::Transport& transport,
                     const std::filesystem::path& path) {
  const auto timeout =
      std::chrono::duration_cast<transport::Clock::duration>(std::chrono::duration<double>(job.timeout_seconds));
  const Measured measured =
      item.model.empty() ? measure_sleeping(item, transport, timeout) : measure_model(item, job, transport, timeout);
  nlohmann::json steps = nlohmann::json::array(), trace = nlohmann::json::array();
  for (const engine::StepTimes& t : measured.steps)
    steps.push_back({{"begin", t.begin}, {"end", t.end}, {"busy", t.busy}, {"waiting", t.waiting}});
  for (const schedule::TimedAction& timed : measured.trace)
    trace.push_back({{"action", to_string(timed.action)},
                     {"overlaps_next", timed.action.overlaps_next},
                     {"begin", timed.begin},
                     {"end", timed.end}});
  std::filesystem::create_directories(path.parent_path());
  write_text_file(path, nlohmann::json{{"steps", steps}, {"trace", trace}}.dump() + "\n");
}

schedule::Trace read_measured_trace(size_t index, int ranks, const std::filesystem::path& out) {
  schedule::Trace trace{"measured", {}};
  double first = std::numeric_limits<double>::infinity();
  for (int r = 0; r < ranks; ++r) {
    std::vector<schedule::TimedAction>& actions = trace.ranks.emplace_back();
    const nlohmann::json measured = read_rank(out, index, r);
    for (const nlohmann::json& timed : measured.at("trace")) {
      actions.push_back(
          {schedule::parse_action(timed.at("action").get<std::string>()), timed.at("begin"), timed.at("end")});
      actions.back().action.overlaps_next = timed.at("overlaps_next");
      first = std::min(first, actions.back().begin);
    }
    if (actions.empty()) throw Error("rank " + std::to_string(r) + " left no trace of its actions");
  }
  // All ranks of one machine read the same clock.
  for (std::vector<schedule::TimedAction>& actions : trace.ranks)
    for (schedule::TimedAction& timed : actions)
      timed.begin = 1000 * (timed.begin - first), timed.end = 1000 * (timed.end - first);
  return trace;
}

Throughput read_throughput(const JobThroughput& item, size_t index, int ranks, const std::filesystem::path& out) {
  std::vector<nlohmann::json> by_rank;
  for (int r = 0; r < ranks; ++r) by_rank.push_back(read_rank(out, index, r).at("steps"));
  Throughput result;
  result.schedule = item.schedule;
  result.ranks = ranks;
  result.microbatches = item.microbatches;
  result.rank_times.resize(ranks);
  std::vector<double> seconds, bubbles;
  const size_t steps = by_rank.front().size();
  for (size_t i = 0; i < steps; ++i) {
    // All ranks of one machine read the same clock: a step lasts from the first begin to the last end.
    double begin = by_rank[0][i]["begin"], end = 0, busy = 0;
    for (int r = 0; r < ranks; ++r) {
      const nlohmann::json& t = by_rank[r][i];
      begin = std::min(begin, t["begin"].get<double>());
      end = std::max(end, t["end"].get<double>());
      busy += t["busy"].get<double>();
      result.rank_times[r].busy += t["busy"].get<double>() / static_cast<double>(steps);
      result.rank_times[r].waiting += t["waiting"].get<double>() / static_cast<double>(steps);
    }
    seconds.push_back(end - begin);
    bubbles.push_back(1.0 - busy / (ranks * (end - begin)));
  }
  result.step_seconds = median(seconds);
  result.microbatches_per_second = item.microbatches / result.step_seconds;
  result.bubble_measured = median(bubbles);
  if (item.model.empty()) {
    char text[64];
    std::snprintf(text, sizeof text, "sleep %g/%g ms", item.forward_ms, item.backward_ms);
    result.workload = text;
    const schedule::Schedule schedule = schedule::make_schedule(item.schedule, ranks, item.microbatches);
    const schedule::Timeline ideal =
        schedule::simulate(schedule, sleeping_durations(item, schedule), {.first_stage_defers = true});
    result.bubble_ideal = ideal.bubble_makespan;
    result.ratio_to_ideal_step = result.step_seconds / (ideal.makespan / 1000.0);
  } else {
    result.workload = "real: " + item.model;
    result.bubble_ideal = schedule::ideal_bubble(schedule::make_schedule(item.schedule, ranks, item.microbatches));
    double busy = 0;
    for (const RankTime& rank : result.rank_times) busy += rank.busy;
    const double pipeline = busy / ranks / (1.0 - result.bubble_ideal);
    const double cores = busy / std::max(1u, std::thread::hardware_concurrency());
    result.ratio_to_ideal_step = result.step_seconds / std::max(pipeline, cores);
  }
  return result;
}

}  // namespace plumbline::conformance

#include "conformance/run/throughput.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "conformance/backend/predicted_trace.h"
#include "conformance/protocol/command/job_failure.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/report/svg/timeline_svg.h"
#include "runtime/error.h"
#include "runtime/median.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulate.h"
#include "runtime/text/one_line.h"
#include "runtime/text/significant.h"

namespace plumbline::conformance {
namespace {

nlohmann::json read_rank(const std::filesystem::path& out, size_t index, int rank) {
  const std::filesystem::path path = throughput_path(out, index, rank);
  std::ifstream in(path);
  if (!in) throw Error("no measurement from rank " + std::to_string(rank) + " (" + path.string() + ")");
  return nlohmann::json::parse(in);
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
  // Every rank has given its times on rank 0's clock.
  for (std::vector<schedule::TimedAction>& actions : trace.ranks)
    for (schedule::TimedAction& timed : actions)
      timed.begin = 1000 * (timed.begin - first), timed.end = 1000 * (timed.end - first);
  return trace;
}

std::string sleep_text(const JobThroughput& item) {
  return significant(item.forward_ms, 6) + "/" + significant(item.backward_ms, 6) + " ms";
}

/// Why the schedule cannot be measured with this workload; empty when it can.
std::string why_not_measured(const ChosenSchedule& chosen, const JobThroughput& workload, int ranks,
                             ModelFacts& models) {
  const std::string name = "schedule " + chosen.name + ": ";
  if (!chosen.csv.empty()) return name + "only named schedules are measured";
  try {
    const schedule::Schedule schedule = make_schedule(chosen, ranks, workload.microbatches);
    if (!schedule::has_backward(schedule)) return name + "has no backward; training is measured";
    const int most =
        workload.model.empty() ? schedule.stages : models.most_stages(workload.model, reference::Dtype::F32);
    if (schedule.stages <= most) return {};
    return name + "has " + std::to_string(schedule.stages) + " stages; " + workload.model + " has " +
           std::to_string(most) + " at most";
  } catch (const InputError& error) {
    return error.what();
  }
}

/// `seconds` receives the duration of each step.
Throughput read_throughput(const JobThroughput& item, size_t index, int ranks, const std::filesystem::path& out,
                           std::vector<double>& seconds) {
  std::vector<nlohmann::json> by_rank;
  for (int r = 0; r < ranks; ++r) by_rank.push_back(read_rank(out, index, r).at("steps"));
  Throughput result;
  result.schedule = item.schedule;
  result.ranks = ranks;
  result.microbatches = item.microbatches;
  result.rank_times.resize(ranks);
  std::vector<double> bubbles;
  const size_t steps = by_rank.front().size();
  for (size_t i = 0; i < steps; ++i) {
    // The times of all ranks are on one clock: a step lasts from the first begin to the last end.
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
  result.step_seconds = mean_of_middles(seconds);
  result.microbatches_per_second = item.microbatches / result.step_seconds;
  result.bubble_measured = mean_of_middles(bubbles);
  if (item.model.empty()) {
    result.workload = "sleep " + sleep_text(item);
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

}  // namespace

std::vector<JobThroughput> measurements(std::span<const JobThroughput> workloads,
                                        std::span<const ChosenSchedule> schedules, int ranks, ModelFacts& models,
                                        std::vector<std::string>& left_out) {
  std::vector<JobThroughput> items;
  for (const ChosenSchedule& chosen : schedules) {
    for (const JobThroughput& workload : workloads) {
      if (const std::string why = why_not_measured(chosen, workload, ranks, models); !why.empty()) {
        left_out.push_back(why);
        continue;
      }
      items.push_back(workload);
      items.back().schedule = chosen.name;
    }
  }
  return items;
}

std::vector<schedule::Trace> measured_traces(const JobThroughput& item, size_t index, int ranks,
                                             const std::filesystem::path& out) {
  schedule::Trace measured = read_measured_trace(index, ranks, out);
  schedule::Trace predicted = predicted_trace(item, measured);
  return {std::move(predicted), std::move(measured)};
}

ThroughputRun measure_throughput(const Backend& backend, const Job& job, const std::filesystem::path& out) {
  ThroughputRun run;
  const JobThroughput* running = nullptr;
  const auto fail = [&](const std::string& reason) {
    if (run.failed.empty())
      run.failed = (running ? "the measurement of " + running->schedule : "measuring on " + backend.name()) +
                   " failed: " + one_line(reason);
  };
  const JobResult result = backend.run(job, out, [&](const JobEvent& event) {
    const JobThroughput& item = job.throughput.at(event.index);
    running = &item;
    if (!event.done) return;
    try {
      std::vector<double> steps;
      run.measured.push_back(read_throughput(item, event.index, job.ranks, out, steps));
      run.steps.push_back(std::move(steps));
      if (item.trace)
        run.measured.back().timeline =
            timeline_svg(measured_traces(item, event.index, job.ranks, out),
                         {.title = item.schedule + ", " + std::to_string(job.ranks) + " ranks, " +
                                   (item.model.empty() ? "stages that sleep " + sleep_text(item) : item.model),
                          .unit = "ms"});
    } catch (const std::exception& error) {
      fail(error.what());
    }
  });
  if (!result.succeeded) fail(reason_of(result));
  return run;
}

}  // namespace plumbline::conformance

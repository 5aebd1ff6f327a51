#include "bench/steps/step_details.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/regular_file.h"
#include "runtime/io/tensor_file.h"
#include "runtime/median.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/text/counted.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

/// The medians of a file's "durations" become the costs of its stages.
void add_durations(const nlohmann::json& file, schedule::StepCosts& costs) {
  for (const nlohmann::json& entry : file.at("durations")) {
    schedule::Durations& durations = costs.durations.at(entry.at("stage").get<size_t>());
    const std::string type = entry.at("type");
    const double median = entry.at("median");
    if (type == "F")
      durations.forward = median;
    else if (type == "B")
      durations.backward = median;
    else
      (type == "I" ? durations.input : durations.weight) = median;
  }
}

/// Over the ranks, in milliseconds.
std::string range(const StepDetails& details, double RankDetails::* member) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const RankDetails& rank : details.ranks) {
    low = std::min(low, rank.*member);
    high = std::max(high, rank.*member);
  }
  return fixed(1e3 * low, 2) + ".." + fixed(1e3 * high, 2);
}

/// The greatest peak of a rank in MiB and the same rank's planned one.
std::string peaks(const StepDetails& details) {
  const auto most = std::ranges::max_element(details.ranks, {}, &RankDetails::peak);
  if (!most->peak) return "-";
  const auto mebibytes = [](int64_t bytes) { return fixed(static_cast<double>(bytes) / (1 << 20), 2); };
  return mebibytes(*most->peak) + " (" + mebibytes(*most->planned_peak) + ")";
}

}  // namespace

StepDetails read_step_details(const conformance::JobThroughput& item, size_t index, int ranks,
                              const std::filesystem::path& out) {
  const schedule::Schedule schedule = schedule::make_schedule(item.schedule, ranks, item.microbatches);
  const auto stages = static_cast<size_t>(schedule.stages);
  schedule::StepCosts costs;
  costs.durations.assign(stages, {.forward = 0, .input = 0, .weight = 0});
  costs.memory.assign(stages, {.activation = 0});
  std::vector<double> begins, ends;
  StepDetails details;
  std::vector<int64_t> gradients;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::filesystem::path path = conformance::throughput_path(out, index, rank);
    try {
      const nlohmann::json file = nlohmann::json::parse(read_file(path));
      const nlohmann::json& steps = file.at("steps");
      begins.resize(steps.size(), std::numeric_limits<double>::infinity());
      ends.resize(steps.size(), 0);
      RankDetails& times = details.ranks.emplace_back();
      for (size_t i = 0; i < steps.size(); ++i) {
        const double begin = steps[i].at("begin"), end = steps[i].at("end"), busy = steps[i].at("busy"),
                     waiting = steps[i].at("waiting"), posting = steps[i].at("posting");
        begins[i] = std::min(begins[i], begin);
        ends[i] = std::max(ends[i], end);
        const double share = 1.0 / static_cast<double>(steps.size());
        times.busy += share * busy;
        times.waiting += share * waiting;
        times.posting += share * posting;
        times.rest += share * (end - begin - busy - waiting - posting);
      }
      add_durations(file, costs);
      file.at("cores").get_to(times.cores);
      const nlohmann::json& memory = file.at("memory");
      if (memory.is_null()) continue;
      times.peak = memory.at("peak").get<int64_t>();
      gradients.push_back(memory.at("gradients"));
      for (const nlohmann::json& entry : memory.at("activations"))
        costs.memory.at(entry.at("stage").get<size_t>()).activation = entry.at("bytes");
    } catch (const std::exception& error) {
      throw Error(path.string() + ": " + error.what());
    }
  }
  std::vector<double> seconds;
  for (size_t i = 0; i < begins.size(); ++i) seconds.push_back(ends[i] - begins[i]);
  details.p50 = mean_of_middles(seconds);
  details.p95 = percentile(seconds, 0.95);
  const schedule::Simulation simulation =
      schedule::simulate_step(schedule, schedule::chain_edges(schedule.stages), costs);
  details.simulated = simulation.timeline.makespan;
  if (gradients.size() == details.ranks.size())
    for (size_t rank = 0; rank < gradients.size(); ++rank)
      details.ranks[rank].planned_peak = gradients[rank] + static_cast<int64_t>(simulation.peak_memory[rank]);
  return details;
}

std::string details_text(const std::vector<StepDetails>& details,
                         const std::vector<conformance::JobThroughput>& items) {
  char line[256];
  const char* format = "%-24s %9s %9s %9s %10s %17s %17s %13s %13s  %s\n";
  std::snprintf(line, sizeof line, format, "ms", "p50", "p95", "simulated", "efficiency", "busy", "waiting", "posting",
                "rest", "peak, MiB (planned)");
  std::string text = line;
  for (size_t i = 0; i < details.size(); ++i) {
    const StepDetails& d = details[i];
    std::snprintf(line, sizeof line, format, items[i].schedule.c_str(), fixed(1e3 * d.p50, 2).c_str(),
                  fixed(1e3 * d.p95, 2).c_str(), fixed(1e3 * d.simulated, 2).c_str(), fixed(d.efficiency(), 3).c_str(),
                  range(d, &RankDetails::busy).c_str(), range(d, &RankDetails::waiting).c_str(),
                  range(d, &RankDetails::posting).c_str(), range(d, &RankDetails::rest).c_str(), peaks(d).c_str());
    text += line;
  }
  return text;
}

std::string cores_text(const StepDetails& details, unsigned cores, double other_load) {
  std::string text;
  const auto pinned = [](const RankDetails& rank) { return rank.cores.size() == 1; };
  if (std::ranges::all_of(details.ranks, pinned)) {
    for (size_t rank = 0; rank < details.ranks.size(); ++rank)
      text += (rank == 0 ? "rank " : ", ") + std::to_string(rank) + (rank == 0 ? " on core " : " on ") +
              std::to_string(details.ranks[rank].cores.front());
  } else {
    text = counted(static_cast<long long>(details.ranks.size()), "rank") + " on " + counted(cores, "core") +
           ", not pinned";
  }
  text += "; other processes took " + fixed(100 * other_load, 0) + " % of the cores meanwhile\n";
  return text;
}

}  // namespace plumbline::bench

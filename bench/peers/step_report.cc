#include "bench/peers/step_report.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "bench/history/median.h"
#include "runtime/text/counted.h"

namespace plumbline::bench {
namespace {

size_t index_of(Arm arm) { return static_cast<size_t>(arm); }

std::string ratio_text(const std::vector<double>& ratios) {
  const auto [least, greatest] = std::ranges::minmax(ratios);
  char text[64];
  std::snprintf(text, sizeof text, "%.2f (%.2f-%.2f)", median(ratios), least, greatest);
  return text;
}

std::string milliseconds(const std::vector<double>& seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%9.2f %9.2f", 1e3 * median(seconds), 1e3 * percentile(seconds, 0.95));
  return text;
}

}  // namespace

std::vector<double> ScheduleSteps::over(Arm arm) const {
  std::vector<double> ratios;
  for (size_t round = 0; round < seconds[index_of(arm)].size(); ++round)
    ratios.push_back(median(seconds[index_of(Arm::PyTorch)][round]) / median(seconds[index_of(arm)][round]));
  return ratios;
}

std::vector<double> all_steps(const ScheduleSteps& steps, Arm arm) {
  std::vector<double> all;
  for (const std::vector<double>& round : steps.seconds[index_of(arm)])
    all.insert(all.end(), round.begin(), round.end());
  return all;
}

std::string to_table(const std::vector<ScheduleSteps>& schedules) {
  char line[256];
  std::snprintf(line, sizeof line, "%-24s %19s  %19s  %19s   %-36s\n%-24s", "step, ms", "PyTorch", "TCP",
                "shared memory", "PyTorch over", "");
  std::string text = line;
  for ([[maybe_unused]] const Arm arm : kArms) {
    std::snprintf(line, sizeof line, " %9s %9s ", "p50", "p95");
    text += line;
  }
  std::snprintf(line, sizeof line, "  %-18s %-18s %s\n", "TCP", "shared memory", "gradients");
  text += line;
  for (const ScheduleSteps& steps : schedules) {
    std::snprintf(line, sizeof line, "%-24s", steps.schedule.c_str());
    text += line;
    if (!steps.wrong.empty()) {
      text += " WRONG: " + steps.wrong + "\n";
      continue;
    }
    for (const Arm arm : kArms) text += " " + milliseconds(all_steps(steps, arm)) + " ";
    std::snprintf(line, sizeof line, "  %-18s %-18s %s\n", ratio_text(steps.over(Arm::Tcp)).c_str(),
                  ratio_text(steps.over(Arm::SharedMemory)).c_str(),
                  steps.bits_equal ? "equal bits" : "within rounding");
    text += line;
  }
  return text;
}

std::string fairness_note(int ranks, int threads, int microbatches, const std::string& torch, const std::string& mpi) {
  return "every arm: fresh processes in each round, in turns; " + counted(ranks, "rank") + " of " +
         counted(threads, "thread") + " on " + counted(std::thread::hardware_concurrency(), "core") + ", not bound; " +
         std::to_string(microbatches) + (microbatches == 1 ? " micro-batch" : " micro-batches") +
         " of the same model and numbers;\n"
         "  a step from a barrier to the end of the slowest rank; gradients are dropped before the barrier\n"
         "PyTorch: " +
         torch +
         ", its own schedule class, PipelineStage with given shapes, gloo over TCP with a thread of "
         "its own;\n"
         "  Python's garbage is collected between steps\n"
         "TCP, shared memory: plumbline's engine on captured stages, " +
         mpi +
         " over its btl tcp on the loopback "
         "device, or as it chooses\n"
         "so PyTorch over TCP compares language, autograd driver and runtime together; shared memory adds a transport "
         "that gloo lacks\n";
}

}  // namespace plumbline::bench

#include "bench/peers/step_report.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "runtime/median.h"
#include "runtime/text/counted.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

size_t index_of(Arm arm) { return static_cast<size_t>(arm); }

std::string ratio_text(const ArmSamples& samples, Arm arm) {
  const std::vector<double> ratios = peer_over(samples, arm);
  const auto [least, greatest] = std::ranges::minmax(ratios);
  return fixed(median(ratios), 1) + " (" + fixed(least, 1) + "-" + fixed(greatest, 1) + ")";
}

std::string arm_text(const ScheduleSteps& steps, Arm arm) {
  const std::vector<double> seconds = all_of(steps.seconds, arm);
  char text[64];
  std::snprintf(text, sizeof text, " %8.2f %8.2f %8.2f ", 1e3 * median(seconds), 1e3 * percentile(seconds, 0.95),
                1e3 * median(all_of(steps.processor, arm)));
  return text;
}

}  // namespace

std::vector<double> all_of(const ArmSamples& samples, Arm arm) {
  std::vector<double> all;
  for (const std::vector<double>& round : samples[index_of(arm)]) all.insert(all.end(), round.begin(), round.end());
  return all;
}

std::vector<double> peer_over(const ArmSamples& samples, Arm arm) {
  std::vector<double> ratios;
  for (size_t round = 0; round < samples[index_of(arm)].size(); ++round)
    ratios.push_back(median(samples[index_of(Arm::Peer)][round]) / median(samples[index_of(arm)][round]));
  return ratios;
}

std::string to_table(const std::vector<ScheduleSteps>& schedules, const PeerEngine& engine) {
  const std::string title = engine.title;
  char line[256];
  std::snprintf(line, sizeof line, "%-24s %27s %27s %27s   %-31s %-31s\n%-24s", "step, ms", (title + " ").c_str(),
                "TCP ", "shared memory ", (title + " over TCP").c_str(), (title + " over shared memory").c_str(), "");
  std::string text = line;
  for (size_t i = 0; i < kArms.size(); ++i) {
    std::snprintf(line, sizeof line, " %8s %8s %8s ", "p50", "p95", "CPU");
    text += line;
  }
  std::snprintf(line, sizeof line, "  %-15s %-15s %-15s %-15s %s\n", "p50", "CPU", "p50", "CPU", "gradients");
  text += line;
  for (const ScheduleSteps& steps : schedules) {
    std::snprintf(line, sizeof line, "%-24s", steps.schedule.c_str());
    text += line;
    if (!steps.wrong.empty()) {
      text += " WRONG: " + steps.wrong + "\n";
      continue;
    }
    for (const Arm arm : kArms) text += arm_text(steps, arm);
    std::snprintf(line, sizeof line, "  %-15s %-15s %-15s %-15s %s\n", ratio_text(steps.seconds, Arm::Tcp).c_str(),
                  ratio_text(steps.processor, Arm::Tcp).c_str(), ratio_text(steps.seconds, Arm::SharedMemory).c_str(),
                  ratio_text(steps.processor, Arm::SharedMemory).c_str(),
                  steps.bits_equal ? "equal bits" : "within rounding");
    text += line;
  }
  return text;
}

std::string fairness_note(int ranks, int threads, int microbatches, const PeerEngine& engine,
                          const std::string& version, const std::string& mpi) {
  const std::string title = engine.title;
  return "every arm: fresh processes in each round, in turns; " + counted(ranks, "rank") + " of " +
         counted(threads, "thread") + " on " + counted(std::thread::hardware_concurrency(), "core") + ", not bound; " +
         counted(microbatches, "micro-batch") +
         " of the same model and numbers;\n"
         "  a step from a barrier to the end of the slowest rank; gradients are dropped before the barrier; CPU: of "
         "all "
         "threads of all ranks\n" +
         title + ": " + version + ", " + engine.fairness_note +
         ", gloo over TCP with a thread of its own;\n"
         "  Python's garbage is collected between steps\n"
         "TCP, shared memory: plumbline's engine on captured stages, " +
         mpi +
         " over its btl tcp on the loopback "
         "device, or as it chooses\n"
         "so " +
         title +
         " over TCP compares language, autograd driver and runtime together; shared memory adds a transport "
         "that gloo lacks\n";
}

}  // namespace plumbline::bench

// plumbline bench alarm: whether a delay is noticed on this machine, and nothing where there is none.
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/cli/recording.h"
#include "bench/history/bench_run_json.h"
#include "bench/history/compare.h"
#include "bench/history/steady_probe.h"
#include "bench/micro/transformer_step.h"
#include "runtime/clock.h"

namespace plumbline::bench {
namespace {

struct AlarmOptions {
  int trials = 20, samples = 20;
  double delay_percent = 5;
};

constexpr int kStepsOfASample = 40;

/// Training steps of the small transformer, with an optional delay in each.
class DelayedStep {
 public:
  /// The delay is `part` of an undisturbed step.
  explicit DelayedStep(double part) {
    for (int i = 0; i < 4; ++i) sample(/*delayed=*/false);  // warms up
    multiplications_ = static_cast<int64_t>(part * sample(/*delayed=*/false) * multiplications_per_second());
  }

  /// The fastest of a few steps: a sample that other work on this machine disturbs little.
  double sample(bool delayed) {
    double fastest = seconds_of_step(delayed);
    for (int i = 1; i < kStepsOfASample; ++i) fastest = std::min(fastest, seconds_of_step(delayed));
    return fastest;
  }

 private:
  double seconds_of_step(bool delayed) {
    const auto begin = std::chrono::steady_clock::now();
    step_.forward_backward(Side::Interpreter);
    if (delayed) multiply(multiplications_);
    return seconds_since(begin);
  }

  TransformerStep step_;
  int64_t multiplications_ = 0;
};

/// A run with these samples, as it is read back from its document.
BenchRun run_of(std::vector<double> samples) {
  BenchRun run = run_here();
  run.benchmarks = {{"alarm/step", {{.name = "step", .unit = "s", .samples = std::move(samples)}}}};
  return parse_bench_run(bench_run_json(run), "alarm");
}

Judgement compared(const BenchRun& before, const BenchRun& after) {
  return compare_runs({&before, 1}, {&after, 1}, {}).front().judgement;
}

int try_alarm(const AlarmOptions& options) {
  at::set_num_threads(1);
  DelayedStep step(options.delay_percent / 100);
  int alarms = 0, false_alarms = 0;
  for (int trial = 1; trial <= options.trials; ++trial) {
    // The three alternate, so that a change of the machine's speed affects all of them. The steady loop is not needed.
    enum { kBefore, kSame, kDelayed };
    std::vector<double> samples[3];
    for (int i = 0; i < options.samples; ++i)
      for (int k = 0; k < 3; ++k) {
        const int which = (i + k) % 3;
        samples[which].push_back(step.sample(which == kDelayed));
      }
    const BenchRun before = run_of(samples[kBefore]);
    const Judgement same = compared(before, run_of(samples[kSame])),
                    delayed = compared(before, run_of(samples[kDelayed]));
    alarms += delayed.change == Change::Regressed;
    false_alarms += same.change == Change::Regressed || same.change == Change::Improved;
    std::printf("%2d  no delay: %-11s %+5.1f %%   delay: %-11s %+5.1f %%\n", trial, change_name(same.change),
                100 * (same.ratio - 1), change_name(delayed.change), 100 * (delayed.ratio - 1));
    std::fflush(stdout);
  }
  std::printf("a delay of %g %% alarms in %d of %d trials, none in %d of %d\n", options.delay_percent, alarms,
              options.trials, false_alarms, options.trials);
  const int allowed = options.trials / 20;
  return options.trials - alarms <= allowed && false_alarms <= allowed ? 0 : 1;
}

}  // namespace

void add_alarm(CLI::App& app, cli::Command& chosen) {
  auto options = std::make_shared<AlarmOptions>();
  CLI::App* command = app.add_subcommand(
      "alarm",
      "Try the comparison itself, on this machine: a planted delay must be found, and where there is none, nothing. "
      "In\n"
      "each trial the steps of a small transformer are measured three times, alternating: twice as they are, once\n"
      "with a delay. Exit 1 if more than one of 20 trials goes wrong on either side.");
  command->add_option("--trials", options->trials, "Number of trials")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--samples", options->samples, "Samples of each measurement")
      ->check(CLI::Range(5, 100'000))
      ->capture_default_str();
  command->add_option("--delay", options->delay_percent, "The planted delay, in percent of a step")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  command->callback([options, &chosen] { chosen = [options] { return try_alarm(*options); }; });
}

}  // namespace plumbline::bench

// plumbline bench micro: each component separately, with Google Benchmark.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "bench/cli/commands.h"
#include "bench/cli/micro_figures.h"
#include "bench/cli/recording.h"
#include "runtime/error.h"

namespace plumbline::bench {
namespace {

/// Shows what Google Benchmark shows, and records the repetitions.
class RecordingReporter : public benchmark::BenchmarkReporter {
 public:
  explicit RecordingReporter(Recording& recording)
      : shown_(benchmark::CreateDefaultDisplayReporter()), recording_(recording) {}

  bool ReportContext(const Context& context) override {
    shown_->SetOutputStream(&GetOutputStream());
    shown_->SetErrorStream(&GetErrorStream());
    return shown_->ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& report) override {
    shown_->ReportRuns(report);
    for (const Run& run : report) {
      if (run.error_occurred) failed_ = run.benchmark_name() + ": " + run.error_message;
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      for (Figure& figure : micro_figures(run)) recording_.add("micro/" + run.benchmark_name(), std::move(figure));
      ++recorded_;
    }
  }
  void Finalize() override { shown_->Finalize(); }

  const std::string& failed() const { return failed_; }
  int recorded() const { return recorded_; }

 private:
  benchmark::BenchmarkReporter* shown_;  // Google Benchmark's own, which lives until the program ends
  Recording& recording_;
  int recorded_ = 0;  ///< repetitions
  std::string failed_;
};

int run(const std::vector<std::string>& flags, const RecordingOptions& options) {
  std::vector<std::string> words = {"plumbline bench micro"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return 2;
  at::set_num_threads(1);  // as the ranks do
  Recording recording(options);
  RecordingReporter reporter(recording);
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) return 2;
  if (!reporter.failed().empty()) throw Error(reporter.failed());
  if (options.wanted() && reporter.recorded() == 0)
    throw InputError(
        "--json and --history need each repetition; leave out --benchmark_display_aggregates_only and "
        "--benchmark_report_aggregates_only");
  recording.write();
  return 0;
}

}  // namespace

void add_micro(CLI::App& app, cli::Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "micro",
      "Each component separately: interpreter against module, backward in halves, capture, split, transport, engine.\n"
      "Takes the flags of Google Benchmark, for example:\n"
      "  --benchmark_list_tests            list the benchmarks\n"
      "  --benchmark_filter=REGEX          run only these\n"
      "  --benchmark_min_time=SECONDS      minimum time for each\n"
      "  --benchmark_repetitions=N         repeat, to show the spread; the samples of --json and --history\n"
      "  --benchmark_format=json           JSON output");
  command->allow_extras();
  auto options = std::make_shared<RecordingOptions>();
  add_recording_options(*command, *options);
  command->callback(
      [command, options, &chosen] { chosen = [command, options] { return run(command->remaining(), *options); }; });
}

}  // namespace plumbline::bench

// plumbline bench compare, history and export: what recorded runs say about each figure.
#include <cstdio>
#include <fstream>
#include <memory>

#include "bench/cli/commands.h"
#include "bench/history/bench_run_json.h"
#include "bench/history/changes.h"
#include "bench/history/google_benchmark.h"
#include "bench/history/trend.h"
#include "bench/page/trends_page.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/report/page/page.h"
#include "conformance/report/read_json.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"

namespace plumbline::bench {
namespace {

/// What compare and history have in common.
struct ShownChanges {
  double effect_percent = 100 * Limits().effect;
  bool all = false;
  std::string json, junit;

  Limits limits() const {
    Limits limits;
    limits.effect = effect_percent / 100;
    return limits;
  }
};

struct HistoryOptions {
  ShownChanges shown;
  std::string history, page;
  std::vector<std::string> add, reports;
  int recent = 7;
};

void add_shown(CLI::App& command, ShownChanges& shown) {
  command
      .add_option("--effect", shown.effect_percent,
                  "Smallest change of a timed figure that counts, in percent. Counted figures are compared exactly")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  command.add_flag("-a,--all", shown.all, "One line for every figure, also for those that did not change");
  command.add_option("--json", shown.json, "Also write the verdicts to this file")->type_name("F.json");
  command.add_option("--junit", shown.junit, "The same as JUnit XML")->type_name("F.xml");
}

/// Prints and writes the changes, and returns the exit code.
int show(const std::vector<FigureChange>& changes, const ShownChanges& shown) {
  std::fputs(changes_text(changes, shown.all).c_str(), stdout);
  if (!shown.json.empty()) write_file(shown.json, changes_json(changes));
  if (!shown.junit.empty()) write_file(shown.junit, changes_junit(changes));
  return exit_code(changes);
}

std::vector<Coverage> coverage_of(const std::vector<std::string>& folders) {
  std::vector<Coverage> coverage;
  for (const std::string& folder : folders)
    coverage.push_back(
        {conformance::page_label(folder), conformance::read_report_json(conformance::ReportFolder(folder).report())});
  return coverage;
}

int judge_history(const HistoryOptions& options) {
  if (!options.reports.empty() && options.page.empty())
    throw InputError("--report: the results of a run are shown on the page only; name it with --page");
  std::vector<BenchRun> added;
  for (const std::string& file : options.add)  // all of them are read before one is appended
    for (BenchRun& run : read_bench_runs(file)) added.push_back(std::move(run));
  const std::vector<Coverage> coverage = coverage_of(options.reports);
  for (const BenchRun& run : added) append_bench_run(options.history, run);
  const std::vector<BenchRun> history = read_bench_runs(options.history);
  const std::vector<Trend> found = trends(history, options.shown.limits(), options.recent);
  if (!options.page.empty()) write_file(options.page, trends_page(history, found, coverage));
  return show(changes_of(found, history), options.shown);
}

}  // namespace

void add_compare(CLI::App& app, cli::Command& chosen) {
  struct CompareOptions {
    ShownChanges shown;
    std::string before, after;
  };
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "Compare two recorded runs, figure by figure: regressed, improved, unchanged, or cannot tell. A file with "
      "several\n"
      "runs, one on each line, counts as repetitions of one run. Exit 0: nothing regressed; 1: a figure did; 2: bad\n"
      "usage or input; 3: no figure can be told.");
  command->add_option("A", options->before, "What a measurement wrote with --json or --history, before")->required();
  command->add_option("B", options->after, "The same, after")->required();
  add_shown(*command, options->shown);
  command->callback([options, &chosen] {
    chosen = [options] {
      return show(
          compare_runs(read_bench_runs(options->before), read_bench_runs(options->after), options->shown.limits()),
          options->shown);
    };
  });
}

void add_history(CLI::App& app, cli::Command& chosen) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command = app.add_subcommand(
      "history",
      "Judge the last run of a history against those before it, and name the commit since which a figure is better or\n"
      "worse. Only runs on the hardware of the last one count. Exit codes as of compare.");
  command->add_option("F.jsonl", options->history, "The history: one run on each line")->required();
  command->add_option("--add", options->add, "Append the runs of this file first; may be repeated")
      ->type_name("RUN.json")
      ->allow_extra_args(false);
  command
      ->add_option("--recent", options->recent,
                   "A change alarms while it is among this many last runs of its figure; then it is the new level")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_shown(*command, options->shown);
  command->add_option("--page", options->page, "Also write a page with the trend of every figure")->type_name("F.html");
  command
      ->add_option("--report", options->reports,
                   "Show the results of this folder of `plumbline run --report` on the page; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command->callback([options, &chosen] { chosen = [options] { return judge_history(*options); }; });
}

void add_export(CLI::App& app, cli::Command& chosen) {
  struct ExportOptions {
    std::string run, out;
  };
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export", "Write the last run of a file as the JSON of Google Benchmark, for its compare.py and other tools.");
  command->add_option("RUN.json", options->run, "What a measurement wrote with --json or --history")->required();
  command->add_option("-o,--output", options->out, "The file to write")->required()->type_name("F.json");
  command->callback([options, &chosen] {
    chosen = [options] {
      write_file(options->out, google_benchmark_json(read_bench_runs(options->run).back()));
      return 0;
    };
  });
}

}  // namespace plumbline::bench

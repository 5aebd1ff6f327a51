// plumbline bench micro: each component separately, with Google Benchmark.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "bench/cli/commands.h"

namespace plumbline::bench {
namespace {

int run(const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"plumbline bench micro"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return 2;
  at::set_num_threads(1);  // as the ranks do
  return benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 2;
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
      "  --benchmark_repetitions=N         repeat, to show the spread\n"
      "  --benchmark_format=json           JSON output");
  command->allow_extras();
  command->callback([command, &chosen] { chosen = [command] { return run(command->remaining()); }; });
}

}  // namespace plumbline::bench

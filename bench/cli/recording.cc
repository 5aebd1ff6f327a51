#include "bench/cli/recording.h"

#include <algorithm>
#include <map>

#include "bench/history/bench_run_json.h"
#include "bench/history/steady_probe.h"
#include "conformance/report/context.h"
#include "runtime/io/write_file.h"
#ifdef PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi/mpi.h"
#endif

namespace plumbline::bench {
namespace {

constexpr int kProbes = 5;

std::string mpi_version() {
#ifdef PLUMBLINE_HAS_MPI
  return transport::mpi_library();
#else
  return "none";
#endif
}

}  // namespace

void add_recording_options(CLI::App& command, RecordingOptions& options) {
  command.add_option("--json", options.json, "Also write the raw samples to this file (docs/benchmarks.md)")
      ->type_name("F.json");
  command.add_option("--history", options.history, "Also append them to this history, see `plumbline bench history`")
      ->type_name("F.jsonl");
}

BenchRun run_here() {
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : conformance::run_context("", {})) facts[name] = value;
  const std::string& commit = facts["commit"];
  return {.date = facts["date"],
          .commit = commit.substr(0, commit.find("-dirty")),
          .modified = facts["dirty"] == "yes",
          .version = facts["version"],
          .machine = {facts["hardware"], facts["libtorch"], mpi_version(), facts["compiler"]},
          .probe = {},
          .benchmarks = {}};
}

Recording::Recording(RecordingOptions options) : options_(std::move(options)) {
  if (!options_.wanted()) return;
  run_ = run_here();
  if (!options_.json.empty()) write_file(options_.json, "");  // fails now rather than after the measurement
  if (!options_.history.empty()) append_file(options_.history, "");
  std::vector<double> warm_up;
  probe_machine(kProbes, warm_up);
  probe();
}

void Recording::probe() {
  if (options_.wanted()) probe_machine(kProbes, run_.probe);
}

void Recording::add(const std::string& benchmark, Figure figure) {
  if (!options_.wanted()) return;
  auto found = std::ranges::find(run_.benchmarks, benchmark, &Benchmark::name);
  if (found == run_.benchmarks.end()) {
    probe();
    found = run_.benchmarks.insert(found, {benchmark, {}});
  }
  const auto same = std::ranges::find(found->figures, figure.name, &Figure::name);
  if (same == found->figures.end())
    found->figures.push_back(std::move(figure));
  else
    same->samples.insert(same->samples.end(), figure.samples.begin(), figure.samples.end());
}

void Recording::write() {
  if (!options_.wanted()) return;
  probe();
  if (!options_.json.empty()) write_file(options_.json, bench_run_json(run_));
  if (!options_.history.empty()) append_bench_run(options_.history, run_);
}

}  // namespace plumbline::bench

// The options --json and --history of commands that measure, and the run that they write.
#pragma once

#include <string>

#include "bench/history/bench_run.h"
#include "conformance/cli/entry.h"

namespace plumbline::bench {

struct RecordingOptions {
  std::string json, history;

  bool wanted() const { return !json.empty() || !history.empty(); }
};

void add_recording_options(CLI::App& command, RecordingOptions& options);

/// Collects a run, with the steady loop before, between and after its benchmarks. Does nothing unless the options name
/// a file.
class Recording {
 public:
  explicit Recording(RecordingOptions options);

  /// Times the steady loop a few times. Constructor, add() and write() do so, too.
  void probe();
  /// Adds a figure to the benchmark of that name, which it begins if there is none. The samples of a figure that is
  /// there already are continued.
  void add(const std::string& benchmark, Figure figure);
  /// Writes the document, and appends it to the history. Throws InputError if a file cannot be written.
  void write();

 private:
  RecordingOptions options_;
  BenchRun run_;
};

/// Version, commit, machine and date, without a benchmark.
BenchRun run_here();

}  // namespace plumbline::bench

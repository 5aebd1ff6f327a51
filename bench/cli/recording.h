// The options --json and --history of the commands that measure, and the run that is written to their files.
#pragma once

#include <string>

#include "bench/history/bench_run.h"
#include "conformance/cli/entry.h"

namespace plumbline::bench {

struct RecordingOptions {
  std::string json;     ///< the path of the file that is replaced; empty: none
  std::string history;  ///< the path of the file to which the run is appended; empty: none

  bool wanted() const { return !json.empty() || !history.empty(); }
};

/// Adds --json and --history to `command`. `options` must live as long as the command.
void add_recording_options(CLI::App& command, RecordingOptions& options);

/// Collects the figures of one run, and times the steady loop (steady_probe.h) before, between and after its
/// benchmarks. All functions do nothing if the options name no file. Not thread-safe.
class Recording {
 public:
  /// Empties the file of --json and creates that of --history if it is missing, so that a path that cannot be written
  /// is an error before the measurement. Then warms up the steady loop and times it. Throws InputError if a file cannot
  /// be written.
  explicit Recording(RecordingOptions options);

  /// Times the steady loop five times, some milliseconds each.
  void probe();
  /// Adds a figure to the benchmark of that name. Begins the benchmark if there is none yet, after a probe(). If the
  /// benchmark has a figure of that name already, appends only the samples to it.
  void add(const std::string& benchmark, Figure figure);
  /// Calls probe(), then replaces the file of --json by the run and appends the run to the file of --history. Throws
  /// InputError if a file cannot be written.
  void write();

 private:
  RecordingOptions options_;
  BenchRun run_;
};

/// Returns a run with the version, the commit, the machine and the date (UTC), without probes and benchmarks.
BenchRun run_here();

}  // namespace plumbline::bench

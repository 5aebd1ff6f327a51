// Writes a run in the JSON format of Google Benchmark, for tools that read it, such as its compare.py.
//
// Format: https://github.com/google/benchmark, docs/user_guide.md and src/json_reporter.cc of 1.7.1.
#pragma once

#include <string>

#include "bench/history/bench_run.h"

namespace plumbline::bench {

/// Returns the document, with a newline at the end. Times are in nanoseconds.
/// - Each timed figure in seconds, except "cpu_time", is a benchmark of its own in the document, with one repetition
///   for each sample. It is called NAME:FIGURE, or only NAME if the figure is "real_time".
/// - The readers require a CPU time. It is the sample of "cpu_time" with the same index for a repetition of
///   "real_time", if there is one; otherwise the real time again.
/// - The other figures (counted ones, and timed ones in other units) are counters of the repetitions of the first timed
///   figure, sample by sample; a figure with fewer samples is missing from the last repetitions. A counter whose name
///   is a member of the format gets a "_" at its end.
/// - A benchmark without a timed figure in seconds has repetitions whose times are 0, as many as its longest figure has
///   samples. A benchmark without figures is left out.
/// - Bytes that are not UTF-8 are replaced.
std::string google_benchmark_json(const BenchRun& run);

}  // namespace plumbline::bench

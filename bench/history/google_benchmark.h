// A run as the JSON that Google Benchmark writes, for tools that read it, such as its compare.py.
//
// Format: https://github.com/google/benchmark, docs/user_guide.md and src/json_reporter.cc of 1.7.1.
#pragma once

#include <string>

#include "bench/history/bench_run.h"

namespace plumbline::bench {

/// Each sample of a figure in seconds is a repetition, with the figure's name after the benchmark's ("NAME:step";
/// "real_time" is left out). Other figures of the benchmark are counters of the repetitions of the first such figure.
/// The readers require a CPU time: where none was measured, it is the real time again. Ends with a newline.
std::string google_benchmark_json(const BenchRun& run);

}  // namespace plumbline::bench

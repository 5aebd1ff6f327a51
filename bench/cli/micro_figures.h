// The results of Google Benchmark as figures of a run.
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "bench/history/bench_run.h"

namespace plumbline::bench {

/// The figures of one repetition, a sample each: real_time, cpu_time (unless the benchmark times itself, so that it
/// means nothing), and the counters. A counter is a time if Google Benchmark inverts it; micro_figures.cc lists all
/// others. Throws Error for a counter that is neither.
std::vector<Figure> micro_figures(const benchmark::BenchmarkReporter::Run& repetition);

}  // namespace plumbline::bench

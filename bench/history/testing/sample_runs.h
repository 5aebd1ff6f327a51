// Runs with noise from a seed, for the tests of what judges them.
#pragma once

#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/history/bench_run.h"

namespace plumbline::bench::testing {

/// Times around `middle` as a machine gives them: a lower bound with noise of 1.5 % above it, and now and then a
/// disturbance of up to 40 %. The same seed gives the same numbers everywhere.
class NoisyTimes {
 public:
  explicit NoisyTimes(uint64_t seed) : random_(seed) {}

  double one(double middle) {
    const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
    const double disturbed = uniform() < 0.05 ? 0.4 * uniform() : 0;
    return middle * (1 + 0.015 * std::abs(normal) + disturbed);
  }

  std::vector<double> several(int count, double middle) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) times.push_back(one(middle));
    return times;
  }

 private:
  double uniform() { return (static_cast<double>(random_() >> 11) + 1) / 9007199254740993.0; }  // in (0, 1]

  std::mt19937_64 random_;
};

inline BenchRun sample_run(const std::string& commit, std::vector<Figure> figures) {
  return {.date = "2026-11-25T03:09:46Z",
          .commit = commit,
          .version = "0.1.0",
          .machine = {"a processor, 2 cores", "2.15.0", "Open MPI 4.1.4", "g++ 12.2.0"},
          .probe = {0.005, 0.00501, 0.00499},
          .benchmarks = {{"throughput/1f1b", std::move(figures)}}};
}

inline Figure timed(std::vector<double> samples, const std::string& name = "step") {
  return {.name = name, .unit = "s", .samples = std::move(samples)};
}

inline Figure counted(std::vector<double> samples, double tolerance = 0) {
  return {.name = "allocations",
          .unit = "allocations",
          .kind = Kind::Counted,
          .tolerance = tolerance,
          .samples = std::move(samples)};
}

}  // namespace plumbline::bench::testing

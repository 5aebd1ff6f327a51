#include "bench/history/google_benchmark.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/history/testing/sample_runs.h"

namespace plumbline::bench {
namespace {

using testing::counted;
using testing::sample_run;
using testing::timed;

TEST(GoogleBenchmark, SamplesAreRepetitionsAndOtherFiguresCounters) {
  BenchRun run = sample_run("c", {timed({1e-3, 2e-3}, "real_time"), timed({5e-4, 6e-4}, "cpu_time"),
                                  timed({3e-6}, "half"), counted({17, 18}), timed({0.9, 1.1}, "ratio")});
  run.benchmarks[0].figures.back().unit = "1";
  run.benchmarks.push_back({"counts", {counted({4})}});
  const auto json = nlohmann::json::parse(google_benchmark_json(run)).at("benchmarks");
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["name"], "throughput/1f1b");
  EXPECT_EQ(json[0]["repetitions"], 2);
  EXPECT_EQ(json[1]["repetition_index"], 1);
  EXPECT_DOUBLE_EQ(json[1]["real_time"], 2e6);
  EXPECT_DOUBLE_EQ(json[1]["cpu_time"], 6e5);
  EXPECT_EQ(json[1]["allocations"], 18);
  EXPECT_EQ(json[1]["ratio"], 1.1);
  EXPECT_EQ(json[2]["name"], "throughput/1f1b:half");
  EXPECT_DOUBLE_EQ(json[2]["cpu_time"], 3e3);
  EXPECT_FALSE(json[2].contains("allocations"));
  EXPECT_EQ(json[3]["name"], "counts");
  EXPECT_EQ(json[3]["allocations"], 4);
}

}  // namespace
}  // namespace plumbline::bench

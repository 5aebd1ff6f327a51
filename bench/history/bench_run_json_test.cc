#include "bench/history/bench_run_json.h"

#include <gtest/gtest.h>

#include <fstream>

#include "bench/history/testing/sample_runs.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline::bench {
namespace {

using testing::counted;
using testing::sample_run;
using testing::timed;

BenchRun full_run() {
  BenchRun run = sample_run("78e0ff5d0c4a", {timed({0.1, 1.0 / 3, 5e-324}), counted({17, 0}, 0.002)});
  run.modified = true;
  run.benchmarks.push_back({"empty \"one\"", {}});
  run.benchmarks[0].figures.push_back({.name = "rate", .unit = "1", .better = Better::Higher, .samples = {3}});
  return run;
}

std::string refusal(const std::string& text) {
  try {
    parse_bench_run(text, "F");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// The sample's document with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = bench_run_json(full_run());
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return refusal(text.replace(at, from.size(), to));
}

TEST(BenchRunJson, IsReadBackAsItWas) {
  const std::string text = bench_run_json(full_run());
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_EQ(parse_bench_run(text, "F"), full_run());
}

TEST(BenchRunJson, TheReaderIsStrict) {
  EXPECT_EQ(changed("plumbline-bench/1", "plumbline-bench/2"),
            "F: schema: expected plumbline-bench/1, not \"plumbline-bench/2\"");
  EXPECT_NE(changed("\"timed\"", "\"felt\""), "");
  EXPECT_NE(changed("\"lower\"", "\"faster\""), "");
  EXPECT_EQ(changed("5e-324", "0"), "F: benchmarks[0].figures[0].samples[2]: expected a number above 0, not 0");
  EXPECT_EQ(changed("17.0,0.0", "17.0,-1"),
            "F: benchmarks[0].figures[1].samples[1]: expected a number of at least 0, not -1");
  EXPECT_EQ(changed("[17.0,0.0]", "[]"), "F: benchmarks[0].figures[1].samples: expected at least one sample, not []");
  EXPECT_NE(changed("\"empty \\\"one\\\"\"", "\"throughput/1f1b\"").find("a benchmark has this name already"),
            std::string::npos);
  EXPECT_NE(changed("\"rate\"", "\"step\"").find("a figure has this name already"), std::string::npos);
  EXPECT_NE(changed("\"better\":\"lower\",", "\"better\":\"lower\",\"tolerance\":0.1,").find("no tolerance"),
            std::string::npos);
  EXPECT_NE(changed("\"mpi\":", "\"host\":\"secret\",\"mpi\":").find("host"), std::string::npos);
  EXPECT_NE(changed("\"date\":", "\"day\":"), "");
  EXPECT_NE(refusal("[]"), "");
  EXPECT_NE(refusal("{"), "");
}

TEST(BenchRunJson, AHistoryGrowsByLines) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "history.jsonl";
  append_bench_run(path, full_run());
  BenchRun second = full_run();
  second.commit = "second";
  append_bench_run(path, second);
  const std::vector<BenchRun> runs = read_bench_runs(path);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0], full_run());
  EXPECT_EQ(runs[1].commit, "second");
}

TEST(BenchRunJson, ATornHistoryIsNotAppendedTo) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "history.jsonl";
  std::ofstream(path) << bench_run_json(full_run()) << "{\"schema\":";
  EXPECT_THROW(append_bench_run(path, full_run()), InputError);
  try {
    read_bench_runs(path);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("history.jsonl:2"), std::string::npos) << error.what();
  }
  std::ofstream(folder / "empty") << "\n";
  EXPECT_THROW(read_bench_runs(folder / "empty"), InputError);
  EXPECT_THROW(read_bench_runs(folder / "none"), InputError);
}

}  // namespace
}  // namespace plumbline::bench

// The files of a run, from the command line: waived, resumed, judged again, shown on a page.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/cli/testing/cli_fixture.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::cli {
namespace {

constexpr const char* kWaiver =
    "schema = \"plumbline-waivers/1\"\n[[waiver]]\ncase = \"exact-mlp-*\"\nwhen = { ranks = 2, device = \"cpu\" }\n"
    "expect = \"fail\"\nlink = \"https://x\"\nreason = \"known\"\nexpires = 2999-01-01\n";

const std::vector<std::string> kRun = {"run", "--case", "exact-mlp-mean", "--schedule", "1f1b", "--ranks", "2"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(Cli, AFolderIsWaivedCheckedAndShown) {
  std::ofstream(folder_ / "w.toml") << kWaiver;
  const conformance::ProcessResult failed =
      start(with(kRun, {"--mutant", "drop-last-microbatch", "--waivers", "w.toml", "--report", "failed"}));
  EXPECT_EQ(exit_code(failed), 0) << failed.output;
  EXPECT_NE(failed.output.find("xfail 1"), std::string::npos) << failed.output;
  const conformance::ProcessResult passed = start(with(kRun, {"--report", "passed"}));
  EXPECT_EQ(exit_code(passed), 0) << passed.output;
  EXPECT_EQ(exit_code(start({"check", "passed"})), 0);
  EXPECT_EQ(exit_code(start({"check", "passed", "--profile", "smoke"})), 1);
  EXPECT_EQ(exit_code(start({"report", "failed", "passed", "-o", "page.html"})), 0);
  EXPECT_NE(read_file(folder_ / "page.html").find("exact-mlp-mean"), std::string::npos);
  EXPECT_NE(read_file(folder_ / "failed/matrix.html").find("w.toml:2: known"), std::string::npos);

  // Judged and reported once more; nothing is run again.
  const conformance::ProcessResult again = start(with(kRun, {"--report", "passed", "--resume"}));
  EXPECT_EQ(exit_code(again), 0) << again.output;
  EXPECT_NE(again.output.find("resumed: 1 of 1"), std::string::npos) << again.output;

  fs::resize_file(folder_ / "passed/results/threads-2/1f1b/exact-mlp-mean/rank1.safetensors", 20);
  const conformance::ProcessResult corrupt = start({"check", "passed"});
  EXPECT_EQ(exit_code(corrupt), 2) << corrupt.output;
  EXPECT_NE(corrupt.output.find("rank1.safetensors: truncated"), std::string::npos) << corrupt.output;
  EXPECT_EQ(corrupt.output.find("rank1.safetensors: truncated"), corrupt.output.rfind("rank1.safetensors: truncated"))
      << "told once\n"
      << corrupt.output;
}

TEST_F(Cli, AFolderOfRunsOnCudaCannotBeCheckedWithoutADevice) {
  ASSERT_EQ(exit_code(start(with(kRun, {"--report", "r"}))), 0);
  nlohmann::json record = nlohmann::json::parse(read_file(folder_ / "r/run.json"));
  record.at("options").at("device") = "cuda";
  std::ofstream(folder_ / "r/run.json") << record.dump();
  const conformance::ProcessResult result = start({"check", "r"}, {"env", "CUDA_VISIBLE_DEVICES=-1"});
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
  EXPECT_TRUE(has(result, "check: r cannot be checked here, its runs were on CUDA devices: ")) << result.output;
}

TEST_F(Cli, ATrainingScriptIsHeldAgainstItsOneRankRun) {
  const std::string key = "0/forward/-/0/m:out";
  for (const auto& [name, value] : std::map<std::string, double>{{"one", 1}, {"same", 1}, {"other", 2}}) {
    fs::create_directories(folder_ / name);
    write_tensor_file(folder_ / name / "rank0.step0.safetensors", {{key, make_f64({1}, {value})}});
    std::ofstream(folder_ / name / "rank0.json")
        << R"({"schema": "plumbline-recorder/1", "rank": 0, "ranks": 1, "microbatches": 1, "whole_batch": false,
               "loss_scale": 1.0, "perturb": null, "torch": "2.15.0", "files": ["rank0.step0.safetensors"],
               "parameters": [], "order": ["m:out"]})";
  }
  EXPECT_EQ(exit_code(start({"check", "same", "--against", "one"})), 0);
  const conformance::ProcessResult result = start({"check", "other", "--against", "one", "--exact"});
  EXPECT_EQ(exit_code(result), 1);
  EXPECT_NE(result.output.find("FIRST DIFFERENCE (forward): step 0, micro-batch 0: forward `m:out`"), std::string::npos)
      << result.output;
  fs::create_directories(folder_ / "empty");
  expect_refused(
      {{{"check", "one", "--against", "empty"}, "it has no rank0.json"}, {{"check", "one", "--exact"}, "--against"}});
}

TEST_F(Cli, WhatIsNoReportIsRefusedInOneLine) {
  fs::create_directories(folder_ / "empty");
  std::ofstream(folder_ / "w.toml") << "schema = \"plumbline-waivers/1\"\n[[waiver]]\ncase = \"nonesuch\"\n";
  expect_refused({{{"check", "nowhere"}, "no folder 'nowhere'"},
                  {{"check", "empty"}, "empty/run.json"},
                  {{"check", "empty", "--against", "nowhere"}, "nowhere: no such folder"},
                  {{"check", "empty", "--against", "empty", "--profile", "core"}, "--against"},
                  {{"check", "empty", "--against", "empty", "--corpus", "empty"},
                   "--against compares recordings; it does not go with --profile, --case and --corpus"},
                  {{"check"}, "DIR is required"},
                  {{"report", "empty", "-o", "page.html"}, "empty/report.json"},
                  {{"report", "empty"}, "--output is required"},
                  {with(kRun, {"--resume", "--report", "empty"}), "no interrupted run in 'empty'"},
                  {with(kRun, {"--waivers", "w.toml"}), "w.toml:3: case: no case of the corpus matches 'nonesuch'"},
                  {with(kRun, {"--waivers", "none.toml"}), "none.toml"},
                  {{"run", "--program", "m.pt2", "--waivers", "w.toml"}, "--waivers is about cases"}});
}

}  // namespace
}  // namespace plumbline::cli

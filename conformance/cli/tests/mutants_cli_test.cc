// `plumbline mutants` from the command line: the list, the kill matrix, recorded killers, random faults.
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/cli/testing/cli_fixture.h"

namespace plumbline::cli {
namespace {

class MutantsCli : public Cli {
 protected:
  /// A run small enough for a test.
  conformance::ProcessResult matrix(std::vector<std::string> words) const {
    std::vector<std::string> all = {"mutants", "--matrix", "--schedule", "gpipe,zb-h1", "--ranks", "2"};
    all.insert(all.end(), words.begin(), words.end());
    return start(all);
  }
  nlohmann::json read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return nlohmann::json::parse(in);
  }
};

TEST_F(MutantsCli, EachIsListedWithItsSentence) {
  const conformance::ProcessResult text = start({"mutants"});
  EXPECT_EQ(exit_code(text), 0);
  EXPECT_NE(text.output.find("drop-last-microbatch"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("The last micro-batch's parameter gradients are dropped."), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(start({"mutants", "--json", "--mutant", "copy-*"}).output);
  ASSERT_GT(json.size(), 2U);
  for (const nlohmann::json& mutant : json) {
    EXPECT_TRUE(mutant["name"].get<std::string>().starts_with("copy-"));
    EXPECT_EQ(mutant["needs"][0], "2 ranks or more");
    EXPECT_EQ(mutant["needs"][1], "a parameter that several stages share");
  }
  const nlohmann::json two =
      nlohmann::json::parse(start({"mutants", "--json", "--mutant", "copy-lost,drop-v*,copy-lost"}).output);
  ASSERT_EQ(two.size(), 2U) << two;
  EXPECT_EQ(std::set<std::string>({two[0]["name"], two[1]["name"]}),
            std::set<std::string>({"copy-lost", "drop-value"}));
}

TEST_F(MutantsCli, TheMatrixIsPrintedAndKept) {
  const conformance::ProcessResult result =
      matrix({"--mutant", "drop-*", "--case", "exact-mlp-*", "--report", report("kept"), "--record", report("k.json")});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_NE(result.output.find("survivors: none"), std::string::npos) << result.output;
  const nlohmann::json kept = read("kept/kill-matrix.json");
  EXPECT_EQ(kept["mutants"].size(), 4U);
  EXPECT_TRUE(kept["survivors"].empty());
  EXPECT_TRUE(kept["broken"].empty());
  const nlohmann::json killers = read("k.json");
  ASSERT_EQ(killers.size(), 4U);
  for (const auto& [mutant, runs] : killers.items()) {
    ASSERT_EQ(runs.size(), 2U) << mutant;
    EXPECT_NE(runs[0]["case"], runs[1]["case"]) << mutant;
    const bool hangs = mutant == "drop-value" || mutant == "drop-gradient";
    EXPECT_EQ(runs[0]["by"], hangs ? "timeout" : "fail") << mutant;
  }
}

/// The record lacks mutants, and has a wrong outcome for one.
TEST_F(MutantsCli, ARecordThatIsWrongIsNoted) {
  std::ofstream(folder_ / "k.json") << R"({"drop-last-microbatch": [
    {"case": "exact-mlp-sum", "schedule": "gpipe", "ranks": 2, "by": "fail"},
    {"case": "exact-mlp-mean", "schedule": "gpipe", "ranks": 2, "by": "timeout"}], "nonesuch": []})";
  const conformance::ProcessResult result = start({"mutants", "--recorded", report("k.json")});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  for (const char* line :
       {"FAIL nonesuch: there is no such mutant\n", "FAIL loss-doubled: it does not have two recorded killers\n",
        "FAIL drop-last-microbatch in exact-mlp-mean x gpipe (2 ranks): fail, but timeout is recorded"})
    EXPECT_NE(result.output.find(line), std::string::npos) << line << "\n" << result.output;
  EXPECT_EQ(result.output.find("exact-mlp-sum"), std::string::npos) << result.output;
}

TEST_F(MutantsCli, OneOfTheTwoRecordedRunsIsTakenIfAskedFor) {
  std::ofstream(folder_ / "k.json") << R"({"drop-last-microbatch": [
    {"case": "exact-mlp-sum", "schedule": "gpipe", "ranks": 2, "by": "timeout"},
    {"case": "exact-mlp-mean", "schedule": "gpipe", "ranks": 2, "by": "timeout"}]})";
  const conformance::ProcessResult result = start({"mutants", "--killers", "1", "--recorded", report("k.json")});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  const std::string wrong = "but timeout is recorded";
  const size_t first = result.output.find(wrong);
  ASSERT_NE(first, std::string::npos) << result.output;
  EXPECT_EQ(result.output.find(wrong, first + 1), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("each in one of its two runs"), std::string::npos) << result.output;
}

/// The mutant needs float32, so no run of this bf16 case can kill it.
TEST_F(MutantsCli, ASurvivorEndsWithOne) {
  const conformance::ProcessResult result = matrix({"--mutant", "value-in-bf16", "--case", "exact-mlp-bf16"});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  EXPECT_NE(result.output.find("survivors: value-in-bf16"), std::string::npos) << result.output;
}

TEST_F(MutantsCli, RandomFaultsSayHowToRepeatThem) {
  const conformance::ProcessResult result =
      start({"mutants", "--random", "6", "--seed", "40", "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks",
             "2", "--report", report("random")});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_NE(result.output.find(conformance::shell_word(std::getenv("PLUMBLINE_PROGRAM")) +
                               " mutants --random 1 --seed 45 --case exact-mlp-sum --schedule gpipe --ranks 2\n"),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find(" 0 missed\n"), std::string::npos) << result.output;
  const nlohmann::json kept = read("random/random-faults.json");
  ASSERT_EQ(kept.size(), 6U);
  const conformance::ProcessResult again = start(
      {"mutants", "--random", "1", "--seed", "45", "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks", "2"});
  EXPECT_NE(again.output.find(kept[5]["what"].get<std::string>()), std::string::npos) << again.output;
}

/// Nothing is printed but the refusal, so no fault has run.
TEST_F(MutantsCli, AReportFolderThatCannotBeMadeIsRefusedBeforeTheFaults) {
  std::ofstream(folder_ / "taken") << "a file";
  for (const char* what : {"--random=1", "--matrix"})
    expect_refused(
        {{{"mutants", what, "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks", "2", "--report", "taken/r"},
          "--report: folder 'taken/r' cannot be made"}});
}

TEST_F(MutantsCli, WhatIsWrongIsSaidInOneLine) {
  expect_refused({
      {{"mutants", "--mutant", "nonesuch"}, "no mutant matches 'nonesuch'"},
      {{"mutants", "--mutant", "copy-lost,copy-lots"}, "no mutant matches 'copy-lots'; nearest: copy-lost"},
      {{"mutants", "--case", "mlp"}, "--case goes with --matrix or --random"},
      {{"mutants", "--matrix", "--case", "nonesuch"}, "nonesuch"},
      {{"mutants", "--matrix", "--random", "2"}, "--random"},
      {{"mutants", "--random", "0"}, "--random"},
      {{"mutants", "--random", "1", "--mutant", "copy-lost"}, "random faults have no names"},
      {{"mutants", "--full"}, "--matrix"},
      {{"mutants", "--json", "--matrix"}, "--json goes with the list of mutants"},
      {{"mutants", "--json", "--random", "1"}, "--json goes with the list of mutants"},
      {{"mutants", "--json", "--recorded", "nonesuch.json"}, "--json goes with the list of mutants"},
      {{"mutants", "--killers", "2"}, "--killers goes with --matrix or --recorded"},
      {{"mutants", "--recorded", "nonesuch.json", "--killers", "3"}, "expected 1 or 2"},
      {{"mutants", "--recorded", "nonesuch.json"}, "nonesuch.json"},
      {{"mutants", "--recorded", "nonesuch.json", "--mutant", "copy-*"}, "--recorded runs all"},
  });
}

}  // namespace
}  // namespace plumbline::cli

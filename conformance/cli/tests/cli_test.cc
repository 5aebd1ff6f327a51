// The program from the command line: exit codes, one line for bad input, files on disk, ranks as threads and by mpirun.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "conformance/cli/testing/cli_fixture.h"
#include "runtime/testing/in_full.h"

namespace plumbline::cli {
namespace {

std::map<std::string, std::string> result_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") {
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream bytes;
      bytes << in.rdbuf();
      files[fs::relative(entry.path(), folder).string()] = bytes.str();
    }
  return files;
}

TEST_F(Cli, AFileBeyondTheLimitOfTheShellIsTold) {
  const conformance::ProcessResult result =
      start({"schedule", "gpipe"}, {"sh", "-c", "ulimit -f 0; exec \"$@\" > printed", "sh"});
  EXPECT_EQ(exit_code(result), 1);
  EXPECT_EQ(result.output, "plumbline: standard output cannot be written\n");
}

TEST_F(Cli, BadInputEndsWithTwoAndOneLine) {
  std::ofstream(folder_ / "a_file") << "x";
  const Refusals inputs = {
      {{"run", "--case", "no-such-case"}, "no case matches 'no-such-case'"},
      {{"run", "--case", ""}, "--case: no pattern given"},
      {{"run", "--case", "mlp,no-such-case"}, "no case matches 'no-such-case'"},
      {{"run", "--case", "exact-mlp-mean", "--schedule", "forward-only"},
       "nothing to run: exact-mlp-mean x forward-only on 4 ranks: it trains, and the schedule has no backward"},
      {{"run", "--schedule", "no-such-schedule"}, "expected one of gpipe, 1f1b"},
      {{"run", "--schedule", "nowhere.csv"}, "nowhere.csv"},
      {{"run", "--profile", "smok"}, "no profile is named 'smok'; nearest: smoke, "},
      {{"run", "--profil", "smoke"}, "--profil; nearest: --profile, "},
      {{"run", "--microbatches", "0"}, "--microbatches"},
      {{"run", "--case", "exact-mlp-mean", "--microbatches", "9"}, "8 rows"},
      {{"run", "--ranks", "17", "--schedule", "gpipe"}, "15 split points, enough for 16 stages"},
      {{"run", "--ranks", "0"}, "--ranks"},
      {{"run", "--seed", "-1"}, "--seed: expected a whole number from 0 to 18446744073709551615, not -1"},
      {{"run", "--seed", "18446744073709551616"}, "from 0 to 18446744073709551615, not 18446744073709551616"},
      {{"run", "--ranks", "two"}, "--ranks"},
      {{"run", "--ranks", "2,0"}, "--ranks"},
      {{"run", "--program", "m.pt2", "--ranks", "2,4"}, "--ranks: 2, 4 given; a program runs on one number of ranks"},
      {{"run", "--keep", "some"}, "--keep"},
      {{"run", "--list", "--program", "m.pt2"}, "--list is about cases"},
      {{"completion"}, "SHELL is required"},
      {{"completion", "tcsh"}, "bash,zsh,fish"},
      {{"help", "nonsense"}, "no subcommand 'nonsense'; expected one of: run, prove, list"},
      {{"run", "--transport", "pigeon"}, "--transport"},
      {{"run", "--recompute", "sometimes"}, "never,except-last,always"},
      {{"run", "--recompute-blocks", "layers"}, "--program"},
      {{"run", "--remat", "everything"}, "default, min-cut, aggressive, bytes and budget=X"},
      {{"run", "--remat", ""}, "default, min-cut, aggressive, bytes and budget=X"},
      {{"run", "--program", "m.pt2", "--remat", ""}, "default, min-cut, aggressive, bytes and budget=X"},
      {{"run", "--remat", "bytes", "--recompute", "always"}, "take one"},
      {{"run", "--remat", "bytes", "--remat-policy", "torch-1"}, "torch-1"},
      {{"run", "--remat-policy", "seed"}, "--remat"},
      {{"run", "--mutant", "nonesuch"}, "drop-last-microbatch"},
      {{"run", "--mutant", "swap-microbatches", "--ranks", "1"}, "needs 2 ranks"},
      {{"run", "--case", "exact-mlp-mean", "--report", "a_file"}, "--report"},
      {{"run", "--case", "exact-mlp-mean", "--report", "/proc/nowhere"}, "--report"},
      {{"run", "--no-such-option"}, "--no-such-option"},
      {{"nonsense"}, "no subcommand 'nonsense'; expected one of: run, prove, list"},
      {{}, "subcommand"},
      {{"list", "--profile", "nonesuch"}, "`plumbline list --profiles` has all"},
      {{"schedule", "nonesuch"}, "gpipe"},
      {{"schedule", "nowhere.csv"}, "nowhere.csv"},
      {{"backend", "run", "--job", "nowhere.json", "--out", "."}, "nowhere.json"},
  };
  expect_refused(some_of(inputs));
}

TEST_F(Cli, HelpTeachesAndVersionIsToldWithoutError) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"run", "--help"}, {"list", "--help"}, {"schedule", "--help"}, {"--version"}})
    EXPECT_EQ(exit_code(start(words)), 0) << words[0];
  EXPECT_NE(start({"run", "--help"}).output.find("mpirun -n 4 plumbline run"), std::string::npos);
}

TEST_F(Cli, HelpOfASubcommandIsItsOptionHelp) {
  for (const auto& words : std::vector<std::vector<std::string>>{{}, {"run"}, {"backend", "run"}, {"completion"}}) {
    std::vector<std::string> asked = words, option = words;
    asked.insert(asked.begin(), "help");
    option.emplace_back("--help");
    EXPECT_EQ(exit_code(start(asked)), 0);
    EXPECT_EQ(start(asked).output, start(option).output);
  }
}

TEST_F(Cli, ListNamesTheRunsAndRunsNone) {
  const conformance::ProcessResult result =
      start({"run", "--list", "--case", "exact-mlp-mean,exact-own-three-ranks", "--schedule", "zb-h*,own", "--ranks",
             "3,2,17,2", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_EQ(result.output,
            "exact-mlp-mean x zb-h1 (2 ranks, threads)\n"
            "exact-mlp-mean x zb-h1 (3 ranks, threads)\n"
            "exact-mlp-mean x zb-h2 (2 ranks, threads)\n"
            "exact-mlp-mean x zb-h2 (3 ranks, threads)\n"
            "exact-own-three-ranks x own (3 ranks, threads)\n"
            "5 runs, and 2 unsupported\n");
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

TEST_F(Cli, AnUnwritableReportFolderIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::create_directories(folder_ / "locked");
  fs::permissions(folder_ / "locked", fs::perms::owner_read);
  EXPECT_EQ(exit_code(start({"run", "--case", "exact-mlp-mean", "--report", "locked"})), 2);
  fs::permissions(folder_ / "locked", fs::perms::owner_all);
}

TEST_F(Cli, SchedulePrintsWhatItReads) {
  const conformance::ProcessResult compute =
      start({"schedule", "1f1b", "--ranks", "2", "--microbatches", "3", "--format", "compute"});
  EXPECT_EQ(compute.output, "0F0,0F1,0B0,0F2,0B1,0B2\r\n1F0,1B0,1F1,1B1,1F2,1B2\r\n");
  std::ofstream(folder_ / "mine.csv") << compute.output;
  EXPECT_EQ(start({"schedule", "mine.csv", "--format", "compute"}).output, compute.output);
  EXPECT_EQ(exit_code(start({"schedule", "gpipe", "--format", "grid"})), 0);
  std::vector<std::string> halves = {"schedule", "zb-h1", "--ranks", "2", "--microbatches", "2", "--format"};
  const auto printed = [&](const char* format) {
    std::vector<std::string> words = halves;
    words.push_back(format);
    return start(words).output;
  };
  EXPECT_EQ(printed("grid"),
            "slot    0   1   2   3   4   5   6\n"
            "rank 0  0F0 0F1 .   0I0 0W0 0I1 0W1\n"
            "rank 1  .   1F0 1I0 1F1 1I1 1W0 1W1\n"
            "\n2F0: forward of stage 2 for micro-batch 0, a slot; I, W: input and weight backward, a slot each; .: "
            "bubble\n");
  halves.insert(halves.end() - 1, {"--lowering", "engine"});
  EXPECT_EQ(printed("comms"),
            "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0I0,0RECV_B1,0W0,0I1,0W1\r\n"
            "1RECV_F0,1F0,1RECV_F1,1I0,1SEND_B0,1F1,1I1,1SEND_B1,1W0,1W1\r\n");
}

TEST_F(Cli, SchedulesAreChosenByPattern) {
  const conformance::ProcessResult result =
      start({"run", "--case", "exact-mlp-mean", "--schedule", "zb-h*,1f1b", "--ranks", "2", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
  std::vector<std::string> schedules;
  for (const auto& verdict : json.at("verdicts")) schedules.push_back(verdict.at("schedule"));
  EXPECT_EQ(schedules, (std::vector<std::string>{"1f1b", "zb-h1", "zb-h2"}));
}

// A V of four stages on two ranks for one micro-batch: cases that it does not fit are unsupported, not failed.
TEST_F(Cli, AScheduleFromAFileRunsCasesAndPrograms) {
  std::ofstream(folder_ / "v.csv") << "0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,2I0,2W0,1I0,1W0\n";
  const conformance::ProcessResult result =
      start({"run", "--case", "exact-o[dn]*", "--schedule", "gpipe,v.csv", "--ranks", "2", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(result.output.find("UNSUPPORTED"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("\nunsupported 1:\n  1  "), std::string::npos) << result.output;
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
  int passed = 0, unsupported = 0;
  for (const auto& verdict : json.at("verdicts")) {
    EXPECT_EQ(verdict.at("ranks"), 2);
    EXPECT_EQ(verdict.at("transport"), "threads");
    const bool fits = verdict.at("schedule") == "gpipe" || verdict.at("case") != "exact-odd-microbatches";
    EXPECT_EQ(verdict.at("status"), fits ? "pass" : "unsupported") << verdict;
    (fits ? passed : unsupported) += 1;
  }
  EXPECT_EQ(json.at("summary").at("pass"), passed);
  EXPECT_EQ(json.at("summary").at("unsupported"), unsupported);
  EXPECT_GT(unsupported, 0);
  const conformance::ProcessResult none =
      start({"run", "--case", "exact-mlp-sum", "--schedule", "v.csv", "--ranks", "2", "--report", report("r")});
  EXPECT_EQ(exit_code(none), 2) << none.output;
  EXPECT_NE(none.output.find("it has 1 micro-batches, not 4"), std::string::npos) << none.output;
}

// Rows of several launches in one report: 2, 4 and 8 ranks, as threads and over MPI.
TEST_F(Cli, NightlyGoesEverywhere) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  const conformance::ProcessResult result =
      start({"run", "--profile", "nightly", "--case", "mlp", "--schedule", "1f1b", "--report", report("r")});
  ASSERT_EQ(exit_code(result), 0) << result.output;
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
  std::vector<std::string> places;
  for (const auto& verdict : json.at("verdicts"))
    places.push_back(verdict.at("transport").get<std::string>() + std::to_string(verdict.at("ranks").get<int>()));
  EXPECT_EQ(places, (std::vector<std::string>{"threads2", "mpi2", "threads4", "mpi4", "threads8", "mpi8"}));
  EXPECT_EQ(result_files(folder_ / "r" / "results" / "mpi-8").size(), 8u);
}

TEST_F(Cli, PassingRunLeavesACompleteReport) {
  std::vector<std::string> words = {"run", "--profile", "smoke", "--ranks", "2", "--report", report("r"), "-v"};
  if (testing::in_full()) words.emplace_back("--throughput");
  const conformance::ProcessResult result = start(words);
  ASSERT_EQ(exit_code(result), 0) << result.output;
  EXPECT_NE(result.output.find("[48/48] PASS "), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("sleep 5/10 ms") != std::string::npos, testing::in_full()) << result.output;
  for (const char* word : {"gpipe", "1f1b", "interleaved-1f1b", "zb-v", "report: "})
    EXPECT_NE(result.output.find(word), std::string::npos) << word << "\n" << result.output;
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
  EXPECT_EQ(json.at("verdicts").size(), 48u);
  for (const auto& verdict : json.at("verdicts")) EXPECT_EQ(verdict.at("status"), "pass") << verdict;
  EXPECT_EQ(json.at("throughput").size(), testing::in_full() ? 12u : 0u);
  for (const char* file : {"junit.xml", "matrix.svg", "results.jsonl"})
    EXPECT_GT(fs::file_size(folder_ / "r" / file), 100u) << file;
}

TEST_F(Cli, WhatPassesIsCountedAndNoMore) {
  const conformance::ProcessResult result =
      start({"run", "--profile", "smoke", "--schedule", "gpipe", "--ranks", "2", "--report", "r"});
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_EQ(result.output,
            "10/24: 10 passed\n"
            "20/24: 20 passed\n"
            "\n"
            "report: r (matrix.html, matrix.svg, report.json, junit.xml, results.jsonl, results/)\n"
            "+ pass 24\n");
}

TEST_F(Cli, ResultsOfPassingRunsNeedNotStay) {
  const std::vector<std::string> words = {
      "run", "--case", "exact-mlp-[ms]*", "--schedule", "gpipe", "--keep", "failures", "--ranks", "2", "--report", "r"};
  EXPECT_EQ(exit_code(start(words)), 0);
  EXPECT_TRUE(result_files(folder_ / "r").empty());
  const conformance::ProcessResult checked = start({"check", "r"});
  EXPECT_EQ(exit_code(checked), 0) << checked.output;
  EXPECT_NE(checked.output.find("is consistent: 2 runs, 2 passes as recorded, 0 problems"), std::string::npos)
      << checked.output;
}

TEST_F(Cli, SpeedIsMeasuredOnlyWhenAskedFor) {
  std::vector<std::string> words = {"run",   "--profile", "smoke", "--case",   "exact-mlp-sum", "--schedule",
                                    "gpipe", "--ranks",   "8",     "--report", report("r")};
  const auto measured = [&] {
    const conformance::ProcessResult result = start(words);
    EXPECT_EQ(exit_code(result), 0) << result.output;
    const bool shared = result.output.find("8 ranks share") != std::string::npos;
    const size_t count = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json")).at("throughput").size();
    EXPECT_EQ(shared, count > 0 && std::thread::hardware_concurrency() < 8) << result.output;
    return count;
  };
  EXPECT_EQ(measured(), 0u);
  words.emplace_back("--throughput");
  EXPECT_EQ(measured(), 2u);
}

/// The program is called by a name that a shell would take apart, and its line is pasted into one.
TEST_F(Cli, AMutantIsCaughtNamedAndCanBeRepeated) {
  fs::create_symlink(std::getenv("PLUMBLINE_PROGRAM"), folder_ / "it's $HOME");
  const auto shell = [&](const std::string& line) {
    conformance::ProcessOptions options;
    options.argv = {"sh", "-c", line};
    options.directory = folder_.path().string();
    options.timeout = std::chrono::minutes(4);
    return conformance::run_process(options);
  };
  const conformance::ProcessResult result = shell(
      "\"./it's \\$HOME\" run --case exact-mlp-mean --schedule 1f1b,gpipe --mutant drop-last-microbatch "
      "--report 'my report'");
  EXPECT_EQ(exit_code(result), 1) << result.output;
  for (const char* word : {"FAIL exact-mlp-mean x 1f1b", "stage 3", "micro-batch 3", "layers.6"})
    EXPECT_NE(result.output.find(word), std::string::npos) << word << "\n" << result.output;
  const std::string mark = "\n  repeat: ";
  const size_t at = result.output.find(mark, result.output.find("FAIL exact-mlp-mean x 1f1b")) + mark.size();
  ASSERT_GT(at, mark.size()) << result.output;
  const conformance::ProcessResult again = shell(result.output.substr(at, result.output.find('\n', at) - at));
  EXPECT_EQ(exit_code(again), 1) << again.output;
  const size_t failure = result.output.find("FAIL exact-mlp-mean x 1f1b");
  EXPECT_NE(again.output.find(result.output.substr(failure, result.output.find('\n', failure) - failure)),
            std::string::npos)
      << again.output;
  EXPECT_NE(again.output.find("X fail 1\n"), std::string::npos) << again.output;
  const nlohmann::json first = nlohmann::json::parse(std::ifstream(folder_ / "my report" / "report.json"));
  EXPECT_EQ(first.at("verdicts").size(), 2u) << "the repeated run has left the report alone";
}

TEST_F(Cli, ThreadsAndMpiGiveIdenticalFiles) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  // A few cases are enough: a run of profile core compares every case with the same oracle over both transports.
  for (const std::string ranks : {"4", "2", "8"}) {
    for (const char* transport : {"threads", "mpi"}) {
      const conformance::ProcessResult result = start(
          {"run", "--profile", "smoke", "--ranks", ranks, "--transport", transport, "--report", report(transport)});
      ASSERT_EQ(exit_code(result), 0) << ranks << " " << transport << "\n" << result.output;
    }
    const auto threads = result_files(folder_ / "threads" / "results" / ("threads-" + ranks)),
               mpi = result_files(folder_ / "mpi" / "results" / ("mpi-" + ranks));
    EXPECT_GE(threads.size(), 48u);
    EXPECT_TRUE(threads == mpi) << ranks << " ranks: the result files differ";
    if (!testing::in_full()) return;
  }
}

// Its rows do not lie together, and LibTorch chooses the kernel of such a product by whether gradients are needed.
TEST_F(Cli, RecomputationHasTheBitsOfProductsOfSeparateRows) {
  const conformance::ProcessResult result = start({"run", "--case", "encoder-decoder*", "--schedule", "gpipe",
                                                   "--ranks", "2", "--recompute", "always", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_TRUE(has(result, "+ pass ")) << result.output;
}

TEST_F(Cli, RunsUnderMpirunAsWell) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  const std::vector<std::string> mpirun = {"mpirun", "-n", "2"};
  const conformance::ProcessResult good = start(
      {"run", "--case", "exact-mlp*", "--schedule", "gpipe,zb-h1", "--report", report("r")}, {"mpirun", "-n", "4"});
  EXPECT_EQ(exit_code(good), 0) << good.output;
  EXPECT_EQ(fs::exists(folder_ / "r" / "report.json"), true);
  const conformance::ProcessResult mutant =
      start({"run", "--case", "mlp", "--schedule", "1f1b", "--mutant", "scale-stage-gradient", "--report", report("m")},
            mpirun);
  EXPECT_EQ(exit_code(mutant), 1) << mutant.output;
  const conformance::ProcessResult bad = start({"run", "--case", "nonesuch"}, mpirun);
  EXPECT_EQ(exit_code(bad), 2) << bad.output;
  EXPECT_NE(bad.output.find("no case matches 'nonesuch'"), std::string::npos);
  std::ofstream(folder_ / "a_file") << "x";
  for (const auto& words : std::vector<std::vector<std::string>>{{"run", "--ranks", "3"},
                                                                 {"run", "--report", "a_file"},
                                                                 {"run", "--transport", "threads"},
                                                                 {"run", "--list"}}) {
    const conformance::ProcessResult wrong = start(words, mpirun);
    EXPECT_EQ(exit_code(wrong), 2) << words[1] << "\n" << wrong.output;
    EXPECT_NE(wrong.output.find("plumbline: " + words[1]), std::string::npos) << wrong.output;
  }
}

TEST_F(Cli, AResultsFolderThatIsNotOursIsLeftAlone) {
  fs::create_directories(folder_ / "mine" / "results");
  std::ofstream(folder_ / "mine" / "results" / "thesis.txt") << "years of work";
  const conformance::ProcessResult result =
      start({"run", "--case", "exact-mlp-mean", "--schedule", "gpipe", "--report", report("mine")});
  EXPECT_EQ(exit_code(result), 2) << result.output;
  EXPECT_TRUE(fs::exists(folder_ / "mine" / "results" / "thesis.txt"));
}

TEST_F(Cli, ACrashedRankCostsItsCaseAloneAndTheRunFails) {
  // The value of the last micro-batch never arrives: the waiting rank stops with its reason, the other follows, and the
  // next case runs.
  const conformance::ProcessResult result =
      start({"run", "--case", "exact-mlp-[ms]*", "--schedule", "gpipe", "--ranks", "2", "--mutant", "drop-value",
             "--timeout", "0.5", "--report", report("r")});
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
  EXPECT_EQ(json.at("verdicts").size(), 2u);
  for (const auto& verdict : json.at("verdicts")) {
    EXPECT_EQ(verdict.at("status"), "error") << verdict;
    const std::string reason = verdict.at("reason");
    EXPECT_NE(reason.find("within 0.5 s"), std::string::npos) << reason;
    // Rank 0 waits for the gradient of a value that it has not sent.
    EXPECT_NE(reason.find("a cycle of waits: rank 0 waits for rank 1 since"), std::string::npos) << reason;
    EXPECT_NE(reason.find("), rank 1 waits for rank 0 since"), std::string::npos) << reason;
    const fs::path page =
        folder_ / "r" / "results" / "threads-2" / "logs" / "gpipe" / verdict.at("case") / "flight.txt";
    EXPECT_TRUE(fs::exists(page)) << page;
  }
  EXPECT_EQ(exit_code(result), 1) << result.output;
}

}  // namespace
}  // namespace plumbline::cli

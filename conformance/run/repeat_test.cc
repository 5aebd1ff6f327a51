#include "conformance/run/repeat.h"

#include <gtest/gtest.h>

#include "conformance/protocol/process/process.h"

namespace plumbline::conformance {
namespace {

/// The words that a shell makes of a line.
std::vector<std::string> words_in_a_shell(const std::string& line) {
  ProcessOptions shell;
  shell.argv = {"sh", "-c", "for word in " + line + "; do printf '%s\\n' \"$word\"; done"};
  const ProcessResult result = run_process(shell);
  EXPECT_TRUE(result.succeeded()) << result.output;
  std::vector<std::string> words;
  std::string word;
  for (const char c : result.output) {
    if (c == '\n')
      words.push_back(std::exchange(word, {}));
    else
      word += c;
  }
  return words;
}

TEST(Repeat, AShellReadsTheWordsOfTheRun) {
  RunOptions options;
  options.backend.foreign = false;
  options.program = "/opt/it's here/plumbline";
  options.report = "a b/report";
  EXPECT_EQ(
      words_in_a_shell(repeat_command(options, {"mlp", "mine $HOME.csv", 4, "mpi"})),
      (std::vector<std::string>{"/opt/it's here/plumbline", "run", "--case", "mlp", "--schedule", "mine $HOME.csv",
                                "--transport", "mpi", "--ranks", "4", "--seed", "1", "--report", "a b/report-repeat"}));
}

TEST(Repeat, TheRanksAreStartedAsTheyWere) {
  RunOptions options;
  options.backend.foreign = false;
  options.launcher = "mpirun --hostfile hosts -n {np}";
  EXPECT_EQ(words_in_a_shell(repeat_command(options, {"mlp", "1f1b", 4, "mpi"})),
            (std::vector<std::string>{"plumbline", "run", "--case", "mlp", "--schedule", "1f1b", "--transport", "mpi",
                                      "--launcher", "mpirun --hostfile hosts -n {np}", "--ranks", "4", "--seed", "1",
                                      "--report", "plumbline-report-repeat"}));
  options.launcher.clear();
  options.started_by = {"mpirun", "--hostfile", "hosts", "-n", "4"};
  EXPECT_EQ(words_in_a_shell(repeat_command(options, {"mlp", "1f1b", 4, "mpi"})),
            (std::vector<std::string>{"mpirun", "--hostfile", "hosts", "-n", "4", "plumbline", "run", "--case", "mlp",
                                      "--schedule", "1f1b", "--seed", "1", "--report", "plumbline-report-repeat"}));
  options.nccl = "stub:late";
  EXPECT_EQ(words_in_a_shell(repeat_command(options, {"mlp", "1f1b", 4, "nccl"})),
            (std::vector<std::string>{"mpirun", "--hostfile", "hosts", "-n", "4", "plumbline", "run", "--case", "mlp",
                                      "--schedule", "1f1b", "--transport", "nccl", "--seed", "1", "--nccl", "stub:late",
                                      "--report", "plumbline-report-repeat"}));
}

TEST(Repeat, EveryOptionOnWhichTheResultDependsIsThere) {
  RunOptions options;
  options.backend.foreign = true;
  options.backend.given = "python3 'my adapter.py'";
  options.seed = 7;
  options.microbatches = 3;
  options.mutant = "copy-lost";
  options.recompute = "always";
  options.remat.mode = "budget=0.5";
  options.timeout_seconds = 0.25;
  options.waivers = "known failures.toml";
  options.report = "report-repeat/";
  EXPECT_EQ(words_in_a_shell(repeat_command(options, {"net *", "1F1B", 2, "own"})),
            (std::vector<std::string>{"plumbline",      "run",
                                      "--case",         "net *",
                                      "--schedule",     "1F1B",
                                      "--backend",      "python3 'my adapter.py'",
                                      "--ranks",        "2",
                                      "--seed",         "7",
                                      "--microbatches", "3",
                                      "--mutant",       "copy-lost",
                                      "--recompute",    "always",
                                      "--remat",        "budget=0.5",
                                      "--remat-policy", options.remat.policy,
                                      "--timeout",      "0.25",
                                      "--waivers",      "known failures.toml",
                                      "--report",       "report-repeat"}));
}

}  // namespace
}  // namespace plumbline::conformance

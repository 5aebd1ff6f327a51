// What surrounds the program: closed streams, a full disk behind standard output, limits, folders that are gone.
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cli/testing/backend_fixture.h"
#include "runtime/testing/processes.h"

namespace plumbline::cli {
namespace {

class Surroundings : public ExampleInC {
 protected:
  /// A command line behind some lines of shell.
  conformance::ProcessResult behind(const std::string& shell, const std::vector<std::string>& words) const {
    return start(words, {"sh", "-c", shell, "sh"});
  }
  static void expect_refusal(const conformance::ProcessResult& result, const std::string& said) {
    EXPECT_EQ(exit_code(result), 2) << result.output;
    EXPECT_EQ(times(result.output, "\n"), 1u) << result.output;
    EXPECT_TRUE(has(result, said)) << result.output;
  }
};

TEST_F(Surroundings, WhatCannotBePrintedIsTold) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"--version"}, {"list"}}) {
    const conformance::ProcessResult result = behind("exec \"$@\" > /dev/full", words);
    EXPECT_EQ(exit_code(result), 1) << words[0] << result.output;
    EXPECT_TRUE(has(result, "standard output cannot be written")) << result.output;
  }
}

TEST_F(Surroundings, ClosedStreamsAreNotTakenForPipesToTheBackend) {
  for (const std::string closed : {"<&- >&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
    fs::remove_all(folder_ / "r");
    behind("\"$@\" " + closed, {"run", "--backend", host_, "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks",
                                "2", "--report", report("r")});
    EXPECT_EQ(verdicts()["exact-mlp-sum gpipe"].at("status"), "pass") << closed;
  }
}

TEST_F(Surroundings, ASmallStackIsRefused) {
  expect_refusal(behind("ulimit -s 128; exec \"$@\"", {"run", "--profile", "smoke"}),
                 "the stack may have 128 KiB, plumbline needs 1024; raise the limit: ulimit -s 8192");
  const conformance::ProcessResult enough =
      behind("ulimit -s 1024; exec \"$@\"",
             {"run", "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks", "2", "--report", report("r")});
  EXPECT_EQ(exit_code(enough), 0) << enough.output;
}

TEST_F(Surroundings, AWorkingFolderThatIsGoneIsRefused) {
  const std::string shell = "mkdir gone; cd gone; rmdir ../gone; exec \"$@\"";
  expect_refusal(behind(shell, {"run", "--profile", "smoke"}), "the working folder is gone");
  EXPECT_EQ(exit_code(behind(shell, {"run", "--help"})), 0);
}

TEST_F(Surroundings, AMissingTemporaryFolderIsNotMade) {
  if (!with_mpi()) GTEST_SKIP() << "no mpirun";
  const conformance::ProcessResult result =
      behind("TMPDIR=$PWD/none exec \"$@\"", {"run", "--case", "exact-mlp-sum", "--transport", "mpi"});
  EXPECT_EQ(exit_code(result), 2) << result.output;
  EXPECT_TRUE(has(result, "TMPDIR does not name a folder")) << result.output;
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST_F(Surroundings, APipeGivesASchedule) {
  const conformance::ProcessResult result =
      start({"schedule", "f.csv"}, {"sh", "-c",
                                    "mkfifo f.csv; \"$1\" schedule gpipe --ranks 2 --microbatches 2 "
                                    "--format compute > f.csv & exec \"$@\"",
                                    "sh"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_TRUE(has(result, "0F0")) << result.output;
}

TEST_F(Surroundings, ManyStrayFilesCostNoMoreThanTheirNames) {
  // 30,000 files took 90 s while each was compared with all others.
  const std::string backend =
      tampered("python3 -c \"for i in range(2, 30002): open('\"$(dirname $f)\"/rank%d.safetensors' % i, 'w')\"");
  const conformance::ProcessResult result = run(backend, "exact-mlp-sum");
  EXPECT_EQ(exit_code(result), 1) << result.output;
  EXPECT_TRUE(has(result, "rank2.safetensors: no such rank; the job has 2 ranks: 0 to 1")) << result.output;
}

TEST_F(Surroundings, AFolderThatCannotBeReadIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every folder";
  ASSERT_EQ(exit_code(run(host_, "exact-mlp-[ms]*")), 0);
  for (const auto& [folder, said] : std::vector<std::pair<fs::path, std::string>>{
           {"r/results/own-2/gpipe/exact-mlp-sum", "ERROR exact-mlp-sum x gpipe"},
           {"r/results", "check: cannot read r/results"}}) {
    fs::permissions(folder_ / folder, fs::perms::none);
    const conformance::ProcessResult result = start({"check", "r"});
    fs::permissions(folder_ / folder, fs::perms::owner_all);
    EXPECT_EQ(exit_code(result), 2) << result.output;
    EXPECT_TRUE(has(result, "cannot read " + folder.string() + ": Permission denied")) << result.output;
    EXPECT_TRUE(has(result, said)) << result.output;
  }
}

TEST_F(Surroundings, AFolderThatIsNotThereIsNamed) {
  const conformance::ProcessResult result = run(scripted("exit 0", "folder = \"no/such\"\n"), "exact-mlp-sum");
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_TRUE(has(result, "cannot start sh: there is no folder " + (folder_ / "no/such").string())) << result.output;
}

TEST_F(Surroundings, ABackendThatKillsItsGuardLeavesNothing) {
  const std::string backend = scripted("if [ $1 != run ]; then exec '" + host_ +
                                       "' \"$@\"; fi\n: > pids; env -i setsid sh -c 'sleep 1000 & echo $! >> pids; "
                                       "echo $$ >> pids; wait' > /dev/null 2>&1 &\n"
                                       "while test $(wc -l < pids) -lt 2; do sleep 0.01; done; kill -9 $PPID; wait");
  const conformance::ProcessResult result = run(backend, "exact-mlp-sum");
  EXPECT_EQ(exit_code(result), 3) << result.output;
  std::ifstream pids(folder_ / "pids");
  size_t count = 0;
  for (pid_t pid = 0; pids >> pid; ++count) EXPECT_TRUE(testing::ends(pid)) << pid;
  EXPECT_EQ(count, 2u);
}

}  // namespace
}  // namespace plumbline::cli

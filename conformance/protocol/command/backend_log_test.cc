#include "conformance/protocol/command/backend_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "conformance/protocol/command/command_backend.h"
#include "conformance/protocol/report_folder.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

class BackendLogs : public ::testing::Test {
 protected:
  /// Runs three cases on a backend whose verb run is this script.
  JobResult run(const std::string& script) {
    std::ofstream(folder_ / "backend.sh") << script << "\n";
    const BackendSpec spec{.name = "scripted", .given = "x", .argv = {"sh", (folder_ / "backend.sh").string()}};
    return CommandBackend(spec).run(job_, folder_ / "out", [&](const JobEvent& event) {
      if (event.done) at_end_.push_back(text(event.index));
    });
  }
  /// The log of a case; "none" without a file.
  std::string text(size_t index) const { return text(backend_log(folder_ / "out", job_.cases.at(index))); }
  static std::string text(const fs::path& file) { return fs::exists(file) ? read_file(file) : "none"; }
  std::string outside() const { return text(backend_log(folder_ / "out")); }

  const TemporaryFolder folder_;
  const Job job_{.ranks = 1, .cases = {{"c0", "gpipe"}, {"c1", "some/mine.csv"}, {"c2", "gpipe"}}};
  std::vector<std::string> at_end_;  ///< the log of each case when its end is told
};

TEST_F(BackendLogs, EachCaseHasItsOwnAndTheRestIsOutside) {
  const JobResult result = run(R"sh(
say() { echo "@plumbline case $*"; }
echo loading
say 0 begins; echo 'step 1'; echo 'step 2'; say 0 done
say 1 begins; echo 'RuntimeError: no' >&2; say 1 failed: no
say 2 begins; say 2 done
printf 'no end of line')sh");
  EXPECT_TRUE(result.succeeded) << result.ending;
  EXPECT_EQ(at_end_, (std::vector<std::string>{"step 1\nstep 2\n", "RuntimeError: no\n", "none"}));
  EXPECT_EQ(outside(), "loading\nno end of line");
  EXPECT_TRUE(fs::exists(folder_ / "out/logs/mine.csv/c1/backend.log"));
}

TEST_F(BackendLogs, ACrashLeavesItsLastWordsAndAnotherLaunchAddsToThem) {
  const std::string crash = "echo again; echo '@plumbline case 0 begins'; echo 'Fatal Python error' >&2; kill -SEGV $$";
  run(crash);
  EXPECT_EQ(text(0), "Fatal Python error\n");
  EXPECT_EQ(outside(), "again\n");
  run(crash);
  EXPECT_EQ(outside(), "again\nagain\n");
}

TEST_F(BackendLogs, AFloodLosesItsMiddleAndSaysSo) {
  run("echo '@plumbline case 0 begins'; echo first; tr '\\0' x < /dev/zero | head -c 300000; echo; echo last; "
      "echo '@plumbline case 0 done'");
  const std::string log = text(0);
  EXPECT_LT(log.size(), BackendLog::kLimit + 100);
  EXPECT_TRUE(log.starts_with("first\nxxx"));
  EXPECT_TRUE(log.ends_with("xxx\nlast\n"));
  const size_t left_out = 6 + 300000 + 1 + 5 - BackendLog::kLimit;
  EXPECT_NE(log.find("\n[... " + std::to_string(left_out) + " bytes left out ...]\n"), std::string::npos);
}

TEST_F(BackendLogs, WhatThePlanSaysOnStandardErrorIsKept) {
  std::ofstream(folder_ / "backend.sh") << "echo 'no licence' >&2; exit 7\n";
  const BackendSpec spec{.name = "scripted", .given = "x", .argv = {"sh", (folder_ / "backend.sh").string()}};
  EXPECT_THROW(CommandBackend(spec).plan(job_, folder_ / "out"), BackendError);
  EXPECT_EQ(outside(), "no licence\n");
}

}  // namespace
}  // namespace plumbline::conformance

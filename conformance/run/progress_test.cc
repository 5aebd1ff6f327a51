#include "conformance/run/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace plumbline::conformance {
namespace {

Verdict verdict_with(Status status, const std::string& reason = "") {
  Verdict v;
  v.run.case_id = "mlp";
  v.run.schedule = "1f1b";
  v.finding.status = status;
  v.finding.reason = reason;
  return v;
}

/// What a terminal of one line height shows in the end: \r goes back, ESC[K clears, \n starts afresh.
std::vector<std::string> on_screen(const std::string& bytes) {
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (bytes[i] == '\r') {
      column = 0;
    } else if (bytes.compare(i, 3, "\x1b[K") == 0) {
      lines.back().resize(column);
      i += 2;
    } else {
      lines.back().resize(std::max(lines.back().size(), column + 1), ' ');
      lines.back()[column++] = bytes[i];
    }
  }
  return lines;
}

TEST(Progress, VerboseOutputHasOneLineForEachRun) {
  std::ostringstream out;
  {
    Progress progress(out, {.total = 10, .verbose = true});
    progress.working_on("mlp x 1f1b");
    progress.finished(verdict_with(Status::Skipped, "no GPU"));
    progress.working_on("mlp x 1f1b");
    progress.finished(verdict_with(Status::Error, "crashed"));
  }
  EXPECT_EQ(out.str(), "[ 1/10] SKIPPED mlp x 1f1b: no GPU\n[ 2/10] ERROR mlp x 1f1b: crashed\n");
}

TEST(Progress, AFailureNamesItsLogAndHowToRepeatIt) {
  Verdict failure = verdict_with(Status::Error, "crashed");
  failure.log = "results/own-2/backend.log";
  failure.repro = "plumbline run --case mlp";
  for (const bool verbose : {false, true}) {
    std::ostringstream out;
    Progress(out, {.total = 1, .verbose = verbose, .report = "r"}).finished(failure);
    EXPECT_EQ(out.str(), std::string(verbose ? "[1/1] " : "") +
                             "ERROR mlp x 1f1b: crashed (see r/results/own-2/backend.log)\n"
                             "  repeat: plumbline run --case mlp\n");
  }
}

/// The lines depend on the verdicts alone, so that two logs of the same run are equal.
TEST(Progress, PlainOutputHasFailuresAndALineAfterEachTenth) {
  std::ostringstream out;
  {
    Progress progress(out, {.total = 200});
    for (int i = 0; i < 200; ++i)
      progress.finished(i == 30   ? verdict_with(Status::Fail, "wrong")
                        : i == 50 ? verdict_with(Status::Unsupported, "no W")
                                  : verdict_with(Status::Pass));
  }
  std::string expected;
  for (int done = 20; done < 200; done += 20) {
    if (done == 40) expected += "FAIL mlp x 1f1b: wrong\n";
    const int failed = done > 30, other = done > 50;
    expected += std::to_string(done) + "/200: " + std::to_string(done - failed - other) + " passed" +
                (failed ? ", 1 failed" : "") + (other ? ", 1 other" : "") + "\n";
  }
  EXPECT_EQ(out.str(), expected);
}

TEST(Progress, AFewRunsPassWithoutAWord) {
  std::ostringstream out;
  {
    Progress progress(out, {.total = 9});
    for (int i = 0; i < 9; ++i) progress.finished(verdict_with(Status::Pass));
  }
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, LiveLineIsRedrawnFailuresStayAndNothingIsLeft) {
  std::ostringstream out;
  {
    Progress progress(out, {.total = 46, .live = true});
    progress.working_on("transformer-lm x 1f1b");
    progress.finished(verdict_with(Status::Pass));
    progress.finished(verdict_with(Status::Fail, "wrong"));
    EXPECT_EQ(on_screen(out.str()),
              (std::vector<std::string>{"FAIL mlp x 1f1b: wrong", "2/46: 1 passed, 1 failed | transformer-lm x 1f1b"}));
    progress.end();
    EXPECT_EQ(on_screen(out.str()), (std::vector<std::string>{"FAIL mlp x 1f1b: wrong", ""}));
    progress.note("done");
  }
  EXPECT_EQ(on_screen(out.str()), (std::vector<std::string>{"FAIL mlp x 1f1b: wrong", "done", ""}));
}

/// From runs that took 3 s each; what was unsupported took no time, and says nothing about the others.
TEST(Progress, TheTimeLeftIsToldOnceItIsKnown) {
  std::ostringstream out;
  Progress progress(out, {.total = 200, .live = true});
  const auto finish = [&](int count, Verdict one, double seconds) {
    one.seconds = seconds;
    for (int i = 0; i < count; ++i) progress.finished(one);
    return on_screen(out.str()).back();
  };
  EXPECT_EQ(finish(4, verdict_with(Status::Pass), 3), "4/200: 4 passed");
  EXPECT_EQ(finish(90, verdict_with(Status::Unsupported), 0), "94/200: 4 passed, 90 other");
  EXPECT_EQ(finish(1, verdict_with(Status::Pass), 3), "95/200: 5 passed, 90 other, about 5 min left");
  EXPECT_EQ(finish(75, verdict_with(Status::Pass), 3), "170/200: 80 passed, 90 other, about 90 s left");
}

TEST(Progress, LiveLineNeverWraps) {
  std::ostringstream out;
  Progress progress(out, {.total = 3, .live = true, .columns = 20});
  progress.working_on("a-case-with-a-very-long-name x 1f1b");
  EXPECT_EQ(on_screen(out.str()).back(), "0/3: 0 passed | a-c");
}

}  // namespace
}  // namespace plumbline::conformance

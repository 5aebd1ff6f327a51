#include "conformance/run/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace plumbline::conformance {
namespace {

Verdict verdict(Status status, const std::string& reason = "") {
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

TEST(Progress, PlainOutputHasOneLineForEachCase) {
  std::ostringstream out;
  {
    Progress progress(out, {.total = 10});
    progress.working_on("mlp x 1f1b");
    progress.finished(verdict(Status::Skipped, "no GPU"));
    progress.working_on("mlp x 1f1b");
    progress.finished(verdict(Status::Error, "crashed"));
  }
  EXPECT_EQ(out.str(), "[ 1/10] SKIPPED mlp x 1f1b: no GPU\n[ 2/10] ERROR mlp x 1f1b: crashed\n");
}

TEST(Progress, LiveLineIsRedrawnFailuresStayAndNothingIsLeft) {
  std::ostringstream out;
  {
    Progress progress(out, {.total = 46, .live = true});
    progress.working_on("transformer-lm x 1f1b");
    progress.finished(verdict(Status::Pass));
    progress.finished(verdict(Status::Fail, "wrong"));
    EXPECT_EQ(on_screen(out.str()),
              (std::vector<std::string>{"FAIL mlp x 1f1b: wrong", "2/46 ok 1 fail 1 | transformer-lm x 1f1b"}));
  }
  EXPECT_EQ(on_screen(out.str()), (std::vector<std::string>{"FAIL mlp x 1f1b: wrong", ""}));
}

TEST(Progress, LiveLineNeverWraps) {
  std::ostringstream out;
  Progress progress(out, {.total = 3, .live = true, .columns = 20});
  progress.working_on("a-case-with-a-very-long-name x 1f1b");
  EXPECT_EQ(on_screen(out.str()).back(), "0/3 ok 0 | a-case-w");
}

}  // namespace
}  // namespace plumbline::conformance

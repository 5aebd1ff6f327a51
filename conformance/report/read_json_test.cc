#include "conformance/report/read_json.h"

#include <gtest/gtest.h>

#include "conformance/report/json.h"
#include "conformance/report/testing/sample_report.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

TEST(ReadReport, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  const RunReport report = sample_report();
  write_report_json(folder / "a/report.json", report);
  const RunReport read = read_report_json(folder / "a/report.json");
  write_report_json(folder / "b/report.json", read);
  EXPECT_EQ(read_file(folder / "a/report.json"), read_file(folder / "b/report.json"));
  EXPECT_EQ(read_file(folder / "b/timelines/0.svg"), report.throughput[0].timeline);
  ASSERT_EQ(read.verdicts.size(), report.verdicts.size());
  for (size_t i = 0; i < read.verdicts.size(); ++i) {
    const Verdict &was = report.verdicts[i], &is = read.verdicts[i];
    EXPECT_EQ(sentence(is), sentence(was));
    EXPECT_EQ(is.finding.status, was.finding.status);
    EXPECT_EQ(is.finding.all.size(), was.finding.all.size());
    EXPECT_EQ(is.finding.bound_use, was.finding.bound_use);
    EXPECT_EQ(is.waiver, was.waiver);
    EXPECT_EQ(is.log, was.log);
    EXPECT_EQ(is.finding.first.has_value(), was.finding.first.has_value());
    if (was.finding.first) {
      EXPECT_EQ(is.finding.first->around, was.finding.first->around);
    }
  }
  EXPECT_EQ(read.broken, report.broken);
  EXPECT_EQ(read.notes, report.notes);
  EXPECT_EQ(exit_code(read), exit_code(report));
}

TEST(ReadReport, AVerdictFromBeforeLogsWereKeptIsRead) {
  const TemporaryFolder folder;
  append_jsonl(folder / "results.jsonl", sample_failure());
  std::string line = read_file(folder / "results.jsonl");
  const std::string log = "\"log\":\"" + sample_failure().log + "\",";
  ASSERT_NE(line.find(log), std::string::npos) << line;
  write_file(folder / "results.jsonl", line.erase(line.find(log), log.size()));
  EXPECT_EQ(read_jsonl(folder / "results.jsonl").at(0).log, "");
}

TEST(ReadReport, TheLineOfAnInterruptedRunIsDropped) {
  const TemporaryFolder folder;
  const fs::path path = folder / "results.jsonl";
  append_jsonl(path, sample_failure());
  append_jsonl(path, sample_bounded());
  const std::string whole = read_file(path);
  size_t complete = 0;
  EXPECT_EQ(read_jsonl(path, &complete).size(), 2u);
  EXPECT_EQ(complete, whole.size());
  write_file(path, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(read_jsonl(path, &complete).size(), 1u);
  EXPECT_EQ(complete, whole.find('\n') + 1);
  write_file(path, "");
  EXPECT_EQ(read_jsonl(path, &complete).size(), 0u);
}

class Corrupt : public ::testing::Test {
 protected:
  template <class Read>
  void expect_refused(const std::string& text, const std::string& expected, const Read& read) {
    const fs::path path = folder_ / "report.json";
    write_file(path, text);
    testing::expect_line(testing::refusal([&] { read(path); }), path.string(), expected);
  }
  const TemporaryFolder folder_;
};

TEST_F(Corrupt, ReportsAreRefusedInOneLine) {
  write_report_json(folder_ / "report.json", sample_report());
  const std::string good = read_file(folder_ / "report.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> files = {
      {"", "not JSON"},
      {good.substr(0, good.size() / 2), "not JSON"},
      {good + "{}", "not JSON"},
      {"\xff\xfe{}", "not JSON"},
      {"3", "object"},
      {std::string(100000, '['), "nested lists and objects"},
      {with("plumbline-report/3", "plumbline-report/2"), "plumbline-report/3"},
      {with("plumbline-report/3", "plumbline-report/4"), "plumbline-report/3"},
      {with("\"schema\"", "\"scheme\""), "schema"},
      {with("\"verdicts\"", "\"verdict\""), "verdict"},
      {with("\"wall_seconds\": 12.5", "\"wall_seconds\": NaN"), "not JSON"},
      {with("\"wall_seconds\": 12.5", "\"wall_seconds\": null"), "wall_seconds: expected a number"},
      {with("\"ranks\": 4", "\"ranks\": 4e300"), "verdicts[0].ranks: expected an integer"},
      {with("\"ranks\": 4", "\"ranks\": 99999999999"), "verdicts[0].ranks: expected an integer"},
      {with("\"ranks\": 4", "\"ranks\": -1"), "verdicts[0].ranks: expected an integer"},
      {with("\"status\": \"fail\"", "\"status\": \"fine\""), "verdicts[0].status: expected a status: pass, fail"},
      {with("\"truth\": \"exact\"", "\"truth\": \"true\""), "one of exact, same-order, bounded"},
      {with("\"key\": \"0/backward/2/3/v17\"", "\"key\": \"0/backwards/2/3/v17\""),
       "verdicts[0].first.key: result key"},
      {with("\"index\": 5", "\"index\": -5"), "index: expected an integer from 0"},
      {with("\"around\"", "\"round\""), "round"},
      {with("\"timelines/0.svg\"", "\"../../secret\""), "the name of a file in the report's folder"},
      {with("\"case\"", "\"case\": \"twice\", \"case\""), "twice"},
  };
  for (const auto& [text, expected] : files) {
    expect_refused(text, expected, [](const fs::path& path) { read_report_json(path); });
  }
}

TEST_F(Corrupt, LinesOfResultsAreNamedByNumber) {
  append_jsonl(folder_ / "good", sample_failure());
  const std::string good = read_file(folder_ / "good");
  const auto read = [](const fs::path& path) { read_jsonl(path); };
  expect_refused(good + "{}\n", "report.json:2: expected an object with \"case\"", read);
  expect_refused(good + "\n", "report.json:2 is not JSON", read);
  expect_refused("\xff\n" + good, "report.json:1 is not JSON", read);
  expect_refused(good + good.substr(10), "report.json:2 is not JSON", read);
}

}  // namespace
}  // namespace plumbline::conformance

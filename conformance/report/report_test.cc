#include "conformance/report/report.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <set>

#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/svg/matrix_svg.h"
#include "conformance/report/text.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

Verdict verdict(const std::string& case_id, const std::string& schedule, Status status,
                const std::string& reason = "") {
  Verdict v;
  v.run.case_id = case_id;
  v.run.schedule = schedule;
  v.finding.status = status;
  v.finding.reason = reason;
  return v;
}

RunReport report_of(const std::vector<Status>& statuses) {
  RunReport report;
  for (const Status status : statuses)
    report.verdicts.push_back(verdict("case-" + std::to_string(report.verdicts.size()), "1f1b", status));
  return report;
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ReportFiles : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST(Report, ExitCode) {
  using enum Status;
  EXPECT_EQ(exit_code(report_of({})), 3);
  EXPECT_EQ(exit_code(report_of({Pass, Unsupported, Skipped})), 0);
  EXPECT_EQ(exit_code(report_of({Unsupported, Skipped})), 3);
  EXPECT_EQ(exit_code(report_of({Pass, NotRun})), 3);
  EXPECT_EQ(exit_code(report_of({XFail, Unsupported})), 0);
  RunReport broken = report_of({Pass});
  broken.broken = {"the ranks ended between two cases"};
  EXPECT_EQ(exit_code(broken), 1);
  for (const Status failure : {Fail, Error, Timeout, Mistrusted, XPass})
    EXPECT_EQ(exit_code(report_of({NotRun, Pass, failure})), 1) << status_name(failure);
}

TEST(Report, MatrixTextForPeople) {
  const std::vector<Verdict> verdicts = {verdict("mlp", "gpipe", Status::Pass), verdict("mlp", "1f1b", Status::Fail),
                                         verdict("transformer-lm", "gpipe", Status::Unsupported),
                                         verdict("mlp", "gpipe", Status::Mistrusted)};
  EXPECT_EQ(matrix_text(verdicts),
            "case            gpipe  1f1b\n"
            "mlp               M     X\n"
            "transformer-lm    -\n");
  EXPECT_EQ(matrix_text(verdicts, {.columns = 20}),
            "case            1  2\n"
            "mlp             M  X\n"
            "transformer-lm  -\n"
            "\n"
            "1 = gpipe\n"
            "2 = 1f1b\n");
  EXPECT_EQ(matrix_text(verdicts, {.only_failures = true}),
            "case  gpipe  1f1b\n"
            "mlp     M     X\n");
  EXPECT_EQ(matrix_text({verdicts[0], verdicts[2]}, {.only_failures = true}), "");
  EXPECT_EQ(summary_text(verdicts), "+ pass 1   X fail 1   - unsupported 1   M mistrusted 1\n");
  EXPECT_EQ(summary_text({}), "no cases\n");
  EXPECT_EQ(matrix_text(verdicts).find('\x1b'), std::string::npos);
  EXPECT_NE(matrix_text(verdicts, {.colour = true}).find("\x1b[1;31mX\x1b[0m"), std::string::npos);
  EXPECT_EQ(matrix_text(std::vector<Verdict>()), "");
}

TEST(Report, RunsThatSayNeitherPassNorFailStandTogetherByReason) {
  std::vector<Verdict> verdicts(12, verdict("mlp", "1f1b", Status::Unsupported, "no W"));
  verdicts.insert(verdicts.begin(), verdict("mlp", "1f1b", Status::Unsupported, "too few\nrows"));
  verdicts.push_back(verdict("mlp", "1f1b", Status::Pass));
  verdicts.push_back(verdict("mlp", "1f1b", Status::NotRun, "the run ended before it"));
  EXPECT_EQ(reasons_text(verdicts),
            "unsupported 13:\n"
            "  12  no W\n"
            "   1  too few rows\n"
            "not-run 1:\n"
            "  1  the run ended before it\n");
  for (int i = 0; i < 11; ++i)
    verdicts.push_back(verdict("mlp", "1f1b", Status::Skipped, "reason " + std::to_string(i)));
  EXPECT_NE(reasons_text(verdicts).find("skipped 11:\n  1  reason 0\n"), std::string::npos) << reasons_text(verdicts);
  EXPECT_NE(reasons_text(verdicts).find("  1  for 1 other reasons (report.json)\n"), std::string::npos);
  EXPECT_EQ(reasons_text({verdict("mlp", "1f1b", Status::Pass)}), "");
}

TEST(Report, ACellHoldsAllItsRunsAndShowsTheWorst) {
  const auto on = [](int ranks, const char* transport, Status status) {
    Verdict v = verdict("mlp", "zb-v", status, status == Status::Pass ? "" : "because");
    v.run.ranks = ranks, v.run.transport = transport;
    return v;
  };
  RunReport report;
  report.verdicts = {on(2, "threads", Status::Unsupported), on(2, "mpi", Status::Pass), on(8, "mpi", Status::Fail),
                     on(1, "threads", Status::Pass)};
  const Matrix matrix = matrix_of(report.verdicts);
  const auto& cell = matrix.rows.at(0).cells.at(0);
  ASSERT_EQ(cell.size(), 4u);
  EXPECT_EQ(cell[0], &report.verdicts[2]);
  EXPECT_EQ(cell[1], &report.verdicts[1]);
  EXPECT_EQ(sentence(report.verdicts[2]), "FAIL mlp x zb-v (8 ranks, mpi): because");
  EXPECT_EQ(sentence(report.verdicts[3]).find("PASS mlp x zb-v (1 rank, threads)"), 0u);
  const std::string svg = matrix_svg(report);
  EXPECT_NE(svg.find("FAIL mlp x zb-v (8 ranks, mpi): because\nalso pass (2 ranks, mpi)\nalso unsupported (2 ranks, "
                     "threads)\nalso pass (1 rank, threads)</title>"),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find("2 of 3 pass, 1 unsupported"), std::string::npos);
}

TEST(Report, ARowShowsTheWeakestTruthThatJudgedAVerdict) {
  using enum reference::Truth;
  const auto judged = [](const char* case_id, const char* schedule, reference::Truth truth, int tensors) {
    Verdict v = verdict(case_id, schedule, tensors > 0 ? Status::Pass : Status::Unsupported);
    v.finding.truth = truth, v.finding.tensors = tensors;
    return v;
  };
  RunReport report;
  report.verdicts = {judged("demoted", "gpipe", SameOrder, 0), judged("demoted", "1f1b", Bounded, 3),
                     judged("mixed", "gpipe", Bounded, 3),     judged("mixed", "1f1b", SameOrder, 3),
                     judged("unjudged", "gpipe", Exact, 0),    judged("unjudged", "1f1b", Exact, 0)};
  const Matrix matrix = matrix_of(report.verdicts);
  const std::vector<std::set<reference::Truth>> expected = {{Bounded}, {SameOrder, Bounded}, {Exact}};
  for (size_t row = 0; row < expected.size(); ++row) EXPECT_EQ(matrix.rows.at(row).truths.kinds(), expected[row]);
  pugi::xml_document svg;
  ASSERT_TRUE(svg.load_string(matrix_svg(report).c_str()));
  EXPECT_EQ(svg.select_nodes("//text[.='bounded']").size(), 2u);
  EXPECT_EQ(svg.select_nodes("//text[.='same-order']").size(), 0u);
  EXPECT_EQ(svg.select_nodes("//text[.='exact']").size(), 1u);
}

TEST(Report, SchedulesStandInTheirOrderAndStrangersBehindThem) {
  std::vector<Verdict> verdicts;
  for (const char* schedule : {"own", "zb-v", "gpipe", "mine.csv", "1f1b", "zb-v"})
    verdicts.push_back(verdict("mlp", schedule, Status::Pass));
  const Matrix matrix = matrix_of(verdicts);
  EXPECT_EQ(matrix.schedules, (std::vector<std::string>{"gpipe", "1f1b", "zb-v", "own", "mine.csv"}));
  EXPECT_EQ(matrix.rows.at(0).cells.at(2), (std::vector<const Verdict*>{&verdicts[1], &verdicts[5]}));
}

TEST(Report, ThroughputText) {
  Throughput t{"1f1b", "sleep 5/10 ms", 8, 16, 0.352, 45.45, 0.318, 0.3043, 1.0205, {{0.24, 0.11}, {0.2395, 0.1125}}};
  EXPECT_EQ(throughput_text({t}, 8),
            "schedule  workload       ranks  micro-batches  step ms  per second  bubble   ideal  step/ideal       "
            "busy ms    waiting ms\n"
            "1f1b      sleep 5/10 ms      8             16   352.00        45.5  31.8 %  30.4 %       1.020  "
            "239.5..240.0  110.0..112.5\n");
  EXPECT_TRUE(throughput_text({t}, 2).ends_with(
      "\n8 ranks share 2 cores: in stages of a model, a rank's wait for a core counts as bubble\n"));
  EXPECT_EQ(throughput_text({}, 2), "");
}

TEST_F(ReportFiles, JunitReadsBackWithHostileNames) {
  const std::string hostile = "<&>\"']]>\n\x01\xff\u00e9";
  const std::string shown = "<&>\"']]>\n\\x01\ufffd\u00e9";  // as much of it as XML can hold
  RunReport report;
  report.wall_seconds = 1.5;
  report.context = {{"command line", hostile}};
  for (const Status status : all_statuses)
    report.verdicts.push_back(verdict(hostile, "1f1b", status, "because " + hostile));
  report.verdicts.push_back(verdict("other", "gpipe", Status::Pass));
  report.verdicts[1].repro = "plumbline run --case '" + hostile + "'";
  write_junit(folder_ / "junit.xml", report);

  pugi::xml_document document;
  ASSERT_TRUE(document.load_file((folder_ / "junit.xml").c_str(), pugi::parse_full & ~pugi::parse_eol));
  const pugi::xml_node root = document.child("testsuites");
  EXPECT_EQ(root.attribute("tests").as_int(), 11);
  EXPECT_EQ(root.attribute("failures").as_int(), 3);
  EXPECT_EQ(root.attribute("errors").as_int(), 3);
  EXPECT_EQ(root.attribute("skipped").as_int(), 3);
  const pugi::xml_node suite = root.find_child_by_attribute("testsuite", "name", "1f1b");
  EXPECT_EQ(suite.attribute("tests").as_int(), 10);
  EXPECT_EQ(root.find_child_by_attribute("testsuite", "name", "gpipe").attribute("failures").as_int(), 0);
  EXPECT_EQ(suite.child("properties").child("property").attribute("value").value(), shown);
  const std::vector<std::string> outcomes = {"",      "failure", "skipped", "skipped", "error",
                                             "error", "error",   "failure", "skipped", "failure"};
  size_t i = 0;
  for (const pugi::xml_node node : suite.children("testcase")) {
    EXPECT_EQ(node.attribute("name").value(), shown);
    EXPECT_EQ(node.attribute("classname").value(), std::string("plumbline.1f1b"));
    EXPECT_EQ(node.first_child().name(), outcomes.at(i)) << i;
    if (i > 0) {
      EXPECT_EQ(node.first_child().attribute("type").value(), std::string(status_name(all_statuses[i])));
    }
    if (i == 1) {
      const std::string text = node.first_child().text().get();
      EXPECT_NE(text.find("repeat: plumbline run --case '" + shown), std::string::npos) << text;
    }
    ++i;
  }
  EXPECT_EQ(i, 10u);
}

TEST_F(ReportFiles, WhatFailedOutsideOfCasesIsInBothFiles) {
  RunReport report = report_of({Status::Pass, Status::Fail});
  report.broken = {"the ranks ended between two cases: <137>"};
  write_junit(folder_ / "junit.xml", report);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_file((folder_ / "junit.xml").c_str()));
  const pugi::xml_node root = document.child("testsuites");
  EXPECT_EQ(root.attribute("tests").as_int(), 3);
  EXPECT_EQ(root.attribute("failures").as_int(), 1);
  EXPECT_EQ(root.attribute("errors").as_int(), 1);
  const pugi::xml_node suite = root.last_child();
  EXPECT_EQ(suite.attribute("errors").as_int(), 1);
  EXPECT_EQ(suite.child("testcase").child("error").attribute("message").value(), report.broken.front());

  report = report_of({Status::Pass});
  report.broken = {"the measurement of 1f1b failed"};
  write_report_json(folder_ / "report.json", report);
  const auto json = nlohmann::json::parse(read_all(folder_ / "report.json"));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["broken"], nlohmann::json::array({"the measurement of 1f1b failed"}));
}

TEST_F(ReportFiles, JsonReadsBack) {
  RunReport report = report_of({Status::Pass, Status::Unsupported});
  report.context = {{"version", "0.1.0"}, {"commit", "abc \xff"}};
  Verdict failed = verdict("mlp", "gpipe", Status::Pass);
  failed.repro = "plumbline run --case mlp";
  HostTensor expected{"F32", {1}, std::vector<std::byte>(4)};
  HostTensor actual = expected;
  const float not_finite = std::numeric_limits<float>::infinity();
  std::memcpy(actual.data.data(), &not_finite, 4);
  set_differences(failed.finding,
                  compare({{"0/grad/-/-/w", expected}}, {{"0/grad/-/-/w", actual}}, CompareMode::Numeric));
  report.verdicts.push_back(failed);
  report.throughput.push_back({"gpipe", "real: mlp", 2, 4, 0.5, 8.0, 0.25, 0.2, 1.1, {{0.4, 0.1}, {0.3, 0.2}}});
  write_report_json(folder_ / "report.json", report);
  const auto json = nlohmann::json::parse(read_all(folder_ / "report.json"));
  EXPECT_EQ(json["schema"], "plumbline-report/3");
  EXPECT_EQ(json["context"]["commit"], "abc \ufffd");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["summary"], (nlohmann::json{{"pass", 1}, {"unsupported", 1}, {"fail", 1}}));
  const auto& first = json["verdicts"][2]["first"];
  EXPECT_EQ(first["key"], "0/grad/-/-/w");
  EXPECT_TRUE(first["stage"].is_null());
  EXPECT_EQ(first["actual"], "inf");
  EXPECT_EQ(first["expected"], 0.0);
  EXPECT_EQ(first["sentence"],
            "step 0: gradient `w` f32[1] differs in 1 of 1 elements; first at [0]: expected 0, got inf");
  EXPECT_EQ(json["verdicts"][2]["repro"], "plumbline run --case mlp");
  EXPECT_EQ(json["throughput"][0]["rank_times"][1]["waiting"], 0.2);
}

TEST_F(ReportFiles, JsonlHasALineForEachVerdict) {
  append_jsonl(folder_ / "results.jsonl", verdict("a\nb", "1f1b", Status::Pass));
  append_jsonl(folder_ / "results.jsonl", verdict("c", "1f1b", Status::Timeout, "late"));
  std::ifstream file(folder_ / "results.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["case"], "a\nb");
  EXPECT_EQ(lines[1]["status"], "timeout");
  EXPECT_EQ(lines[1]["sentence"], "TIMEOUT c x 1f1b: late");
}

TEST(MatrixSvg, IsWellFormedAndShowsEveryCellAndBar) {
  RunReport report;
  report.context = {{"version", "0.1.0"}, {"commit", "<abc>"}};
  for (const char* schedule : {"gpipe", "1f1b", "a&b"})
    for (const char* case_id : {"mlp", "<script>"}) report.verdicts.push_back(verdict(case_id, schedule, Status::Pass));
  report.verdicts.back().finding.status = Status::Error;
  report.verdicts.back().finding.reason = "died & \x02";
  report.throughput.push_back({"1f1b", "sleep 5/10 ms", 8, 16, 0.35, 45.0, 0.4, 0.2, 1.02, {}});
  report.throughput.push_back(
      {"gpipe", "sleep 5/10 ms", 8, 16, 0.35, 45.0, std::numeric_limits<double>::quiet_NaN(), 0.1, 1.02, {}});
  pugi::xml_document document;
  const std::string svg = matrix_svg(report);
  ASSERT_TRUE(document.load_string(svg.c_str()));
  EXPECT_EQ(document.child("svg").attribute("width").as_int(), 900);
  EXPECT_EQ(document.select_nodes("//g[starts-with(title, 'PASS')]").size(), 5u);
  const auto error = document.select_node("//g[starts-with(title, 'ERROR')]").node();
  EXPECT_EQ(error.child("title").text().get(), std::string("ERROR <script> x a&b: died & \\x02"));
  EXPECT_EQ(error.child("text").text().get(), std::string("E"));
  EXPECT_EQ(document.select_nodes("//text[. = 'a&b']").size(), 1u);
  EXPECT_EQ(document.select_nodes("//text[. = 'n/a %']").size(), 1u) << "a bubble that is not a number";
  // The lengths of the bars are in the proportion of the bubbles.
  const auto bars = [&](const char* fill, int height) {
    std::vector<double> lengths;
    const std::string path = "//rect[@fill='" + std::string(fill) + "' and @height='" + std::to_string(height) + "']";
    for (const auto& node : document.select_nodes(path.c_str()))
      lengths.push_back(node.node().attribute("width").as_double());
    return lengths;
  };
  const std::vector<double> measured = bars("#0969da", 15);
  const std::vector<double> ideal = bars("#b6c2cf", 11);
  ASSERT_EQ(measured.size(), 2u);
  ASSERT_EQ(ideal.size(), 2u);
  EXPECT_GT(ideal[1], 1.0);
  EXPECT_NEAR(measured[0] / ideal[1], 4.0, 0.05);
  EXPECT_NEAR(ideal[0] / ideal[1], 2.0, 0.05);
  EXPECT_EQ(measured[1], 0.0);
  EXPECT_EQ(svg.find("nan\""), std::string::npos);
  EXPECT_TRUE(document.load_string(matrix_svg({}).c_str()));
}

}  // namespace
}  // namespace plumbline::conformance

// Result folders from the session that writes them to the check that judges them again.
#include "conformance/run/folder/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/backend/built_models.h"
#include "conformance/backend/runtime.h"
#include "conformance/report/read_json.h"
#include "conformance/run/folder/open_report.h"
#include "conformance/run/session.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using testing::refusal;

constexpr const char* kRank1 = "results/threads-2/1f1b/exact-mlp-mean/rank1.safetensors";

class Check : public ::testing::Test {
 protected:
  Check() {
    options_.selection.case_glob = "exact-mlp-mean";
    options_.selection.schedules = "gpipe,1f1b";
    options_.selection.ranks = {2};
    options_.report = folder_ / "report";
  }

  /// The ranks of the plan as threads, judged as they end; `most` ends it early, as an interruption does.
  int run(size_t most = std::numeric_limits<size_t>::max()) {
    const RunPlan plan = make_plan(options_, *built_models(options_.seed));
    Session session(options_, plan, said_, {}, open_report_folder(options_, plan));
    size_t done = 0;
    for (const RunGroup& group : plan.groups) {
      Runtime().run(group.job, ReportFolder(options_.report).job_output(group.job.ranks, group.transport),
                    [](const JobEvent&) {});
      for (const size_t index : group.runs)
        if (!session.judged(index) && done++ < most) session.done(index);
    }
    return done > most ? -1 : session.report();
  }

  CheckResult check(const std::string& profile = "") const { return check_folder({options_.report, profile, ""}); }

  void waive(const std::string& expect, const std::string& expires = "2999-01-01") {
    options_.waivers = folder_ / "w.toml";
    write_file(
        options_.waivers,
        "schema = \"plumbline-waivers/1\"\n[[waiver]]\ncase = \"exact-mlp-*\"\nschedule = \"1f1b\"\nexpect = \"" +
            expect + "\"\nlink = \"https://x\"\nreason = \"known\"\nexpires = " + expires +
            "\n[[waiver]]\ncase = \"exact-tied-*\"\nexpect = \"fail\"\nlink = \"https://x\"\nreason = \"other\"\n"
            "expires = 2999-01-01\n");
  }

  const TemporaryFolder folder_;
  RunOptions options_;
  std::ostringstream said_;
};

TEST_F(Check, ComesToTheVerdictsOfTheRunThatWroteTheFolder) {
  EXPECT_EQ(run(), 0) << said_.str();
  const CheckResult result = check();
  EXPECT_EQ(result.problems, std::vector<std::string>{});
  EXPECT_EQ(exit_code(result), 0);
  const std::vector<Verdict> said = read_report_json(options_.report / "report.json").verdicts;
  ASSERT_EQ(result.verdicts.size(), 2u);
  ASSERT_EQ(said.size(), 2u);
  for (size_t i = 0; i < said.size(); ++i) EXPECT_EQ(sentence(result.verdicts[i]), sentence(said[i]));
  EXPECT_TRUE(fs::exists(options_.report / "matrix.html"));
}

TEST_F(Check, FilesWithoutAVerdictDoNotCount) {
  EXPECT_EQ(run(1), -1);  // the files of both runs are there
  const CheckResult result = check();
  EXPECT_EQ(result.problems, std::vector<std::string>{});
  ASSERT_EQ(result.verdicts.size(), 2u);
  EXPECT_EQ(result.verdicts[0].finding.status, Status::Pass);
  EXPECT_EQ(result.verdicts[1].finding.status, Status::NotRun);
  EXPECT_EQ(result.verdicts[1].finding.reason, "the run ended before it was done");
  EXPECT_EQ(exit_code(result), 3);
}

TEST_F(Check, OfTwoVerdictsOnARunTheLastOneIsHeldAgainstItsFiles) {
  EXPECT_EQ(run(1), -1);
  const fs::path log = options_.report / "results.jsonl";
  const std::string passed = read_file(log);
  std::string failed = passed;
  for (const auto& [from, to] : {std::pair("\"status\":\"pass\"", "\"status\":\"fail\""),
                                 std::pair("\"sentence\":\"PASS", "\"sentence\":\"FAIL")}) {
    ASSERT_NE(failed.find(from), std::string::npos) << failed;
    failed.replace(failed.find(from), std::strlen(from), to);
  }
  write_file(log, failed + passed);
  EXPECT_EQ(check().problems, std::vector<std::string>{});
  EXPECT_EQ(check().verdicts.at(0).finding.status, Status::Pass);
  write_file(log, passed + failed);
  ASSERT_EQ(check().problems.size(), 1u);
  EXPECT_NE(check().problems.at(0).find("the run recorded \"FAIL"), std::string::npos) << check().problems.at(0);
}

TEST_F(Check, TwoRunsDoNotShareAFolder) {
  const RunPlan plan = make_plan(options_, *built_models(options_.seed));
  {
    const OpenReport report = open_report_folder(options_, plan);
    for (const bool resume : {false, true}) {
      options_.resume = resume;
      testing::expect_line(testing::refusal([&] { open_report_folder(options_, plan); }), "--report: folder '",
                           "is in use by another run");
    }
  }
  options_.resume = false;
  EXPECT_EQ(run(), 0) << said_.str();
}

TEST_F(Check, FilesOfOthersAreNotOverwritten) {
  for (const char* name : {"run.json", "matrix.html", "results"}) {
    fs::remove_all(options_.report);
    fs::create_directories(options_.report);
    write_file(options_.report / name, "precious");
    testing::expect_line(testing::refusal([&] { run(); }), "--report: '",
                         std::string(name) + "' is there already and no earlier report of ours");
    EXPECT_EQ(read_file(options_.report / name), "precious");
  }
}

TEST_F(Check, FailuresAreFoundAgain) {
  options_.mutant = "drop-last-microbatch";
  EXPECT_EQ(run(), 1);
  const CheckResult result = check();
  EXPECT_EQ(result.problems, std::vector<std::string>{});
  EXPECT_EQ(exit_code(result), 1);
  const std::vector<Verdict> said = read_report_json(options_.report / "report.json").verdicts;
  for (size_t i = 0; i < said.size(); ++i) {
    EXPECT_EQ(result.verdicts[i].finding.status, Status::Fail);
    EXPECT_EQ(sentence(result.verdicts[i]), sentence(said[i]));
    ASSERT_TRUE(said[i].finding.first);
    EXPECT_FALSE(said[i].finding.first->around.empty());
  }
}

TEST_F(Check, WhatIsWrongWithAFolderIsNamed) {
  ASSERT_EQ(run(), 0);
  const fs::path good = folder_ / "good";
  fs::rename(options_.report, good);
  const auto change = [&](const std::function<void(TensorMap&)>& act) {
    return [&, act](const fs::path& file) {
      TensorMap tensors = read_tensor_file(file);
      act(tensors);
      write_tensor_file(file, tensors);
    };
  };
  const auto replace = [](const std::string& from, const std::string& to) {
    return [=](const fs::path& file) {
      std::string text = read_file(file);
      ASSERT_NE(text.find(from), std::string::npos) << from;
      write_file(file, text.replace(text.find(from), from.size(), to));
    };
  };
  struct Row {
    std::string file;
    std::function<void(const fs::path&)> act;
    std::string expected;
  };
  const std::string key = "0/grad/-/-/layers.0.fc.weight",
                    rank0 = "results/threads-2/1f1b/exact-mlp-mean/rank0.safetensors";
  const std::string recorded = "1f1b/exact-mlp-mean: the run recorded \"PASS";
  const std::vector<Row> rows = {
      {kRank1, [](const fs::path& f) { fs::remove(f); }, "no results in "},
      {kRank1, [](const fs::path& f) { fs::resize_file(f, fs::file_size(f) - 3); }, "rank1.safetensors: tensor"},
      {kRank1, [](const fs::path& f) { fs::resize_file(f, 7); }, "rank1.safetensors: truncated"},
      {kRank1, [](const fs::path& f) { write_file(f, std::string("\0\0\0\0\1\0\0\0{}", 10)); },
       "header length 4294967296"},
      {kRank1, change([](TensorMap& t) { t.emplace("nonsense", make_f64({}, {1})); }), "rank1.safetensors: result key"},
      {kRank1, change([](TensorMap& t) { t.erase(t.begin()); }), recorded},
      {kRank1, change([](TensorMap& t) { t.emplace("0/grad/-/-/extra", make_f64({}, {1})); }), recorded},
      {kRank1, change([](TensorMap& t) { t.begin()->second.dtype = "I32"; }), recorded},
      {kRank1, change([](TensorMap& t) { std::memset(t.begin()->second.data.data(), 0xff, 4); }), recorded},
      {rank0, change([&](TensorMap& t) {
         ASSERT_TRUE(t.contains(key));
         t[key].shape = {element_count(t[key])};
       }),
       recorded},
      {"results/threads-2/1f1b/exact-mlp-mean/rank2.safetensors", [](const fs::path& f) { write_tensor_file(f, {}); },
       "no run of run.json leaves such a file"},
      {"run.json", [](const fs::path& f) { fs::remove(f); }, "run.json"},
      {"run.json", [](const fs::path& f) { fs::resize_file(f, 50); }, "run.json is not JSON"},
      {"run.json", replace("plumbline-run/1", "plumbline-run/2"), "plumbline-run/1"},
      {"run.json", replace("exact-mlp-mean", "exact-mlp-meen"), "run.json: case: no case is named 'exact-mlp-meen'"},
      {"run.json", replace("\"threads\"", "\"pigeons\""), "run.json: transport 'pigeons'"},
      {"report.json", replace("plumbline-report/3", "plumbline-report/2"), "plumbline-report/3"},
      {"report.json", [](const fs::path& f) { fs::resize_file(f, 50); }, "report.json is not JSON"},
      {"results.jsonl", replace("\"pass\"", "\"past\""), "results.jsonl:1: status: expected a status"},
      {"report.json", replace("\"status\": \"pass\"", "\"status\": \"fail\""),
       "sentence: expected one that begins with FAIL, its status"},
      {"report.json", replace("\"exit_code\": 0", "\"exit_code\": 7"),
       "exit_code: expected 0, as its verdicts have it"},
      {"report.json", replace("\"pass\": 2", "\"pass\": 99"), "summary: expected the counts of its verdicts"},
      {"report.json", replace("\"sentence\": \"PASS", "\"sentence\": \"FAIL"),
       "sentence: expected one that begins with PASS, its status"},
      {"results.jsonl", [](const fs::path& f) { fs::remove(f); },
       "results.jsonl: is missing; a finished run leaves it"},
      {"junit.xml", [](const fs::path& f) { fs::remove(f); }, "junit.xml: is missing"},
      {"matrix.html", [](const fs::path& f) { fs::remove(f); }, "matrix.html: is missing"},
      {"results.jsonl",
       [&](const fs::path& f) {
         const std::string text = read_file(f);
         append_file(f, text.substr(0, text.find('\n') + 1));
         replace("\"pass\"", "\"skipped\"")(f);  // an earlier verdict does not count, the last one does
         replace("\"sentence\":\"PASS", "\"sentence\":\"SKIPPED")(f);
         write_file(f, read_file(f) + text.substr(text.find('\n') + 1));
         std::string last = read_file(f);
         const size_t at = last.rfind("\"status\":\"pass\"");
         last.replace(at, 15, "\"status\":\"fail\"");
         last.replace(last.rfind("\"sentence\":\"PASS"), 16, "\"sentence\":\"FAIL");
         write_file(f, last);
       },
       "is fail, in report.json it is pass"},
      {"run.json",
       [](const fs::path& f) {
         nlohmann::json json = nlohmann::json::parse(read_file(f));
         json["runs"].push_back(json["runs"][0]);
         write_file(f, json.dump());
       },
       "runs[2]: appears twice"},
  };
  for (const Row& row : rows) {
    fs::remove_all(options_.report);
    fs::copy(good, options_.report, fs::copy_options::recursive);
    row.act(options_.report / row.file);
    CheckResult result;
    const std::string refused = refusal([&] { result = check(); });
    const bool read = refused == "accepted";
    const std::vector<std::string> lines = read ? result.problems : std::vector{refused};
    ASSERT_EQ(lines.size(), 1u) << row.file << ": " << row.expected;
    EXPECT_NE(lines[0].find(row.expected), std::string::npos) << lines[0];
    EXPECT_EQ(lines[0].find('\n'), std::string::npos) << lines[0];
    if (read) {
      EXPECT_EQ(exit_code(result), 2) << row.expected;
    }
  }
}

TEST_F(Check, AForgedVerdictIsHeldAgainstItsFiles) {
  options_.mutant = "drop-last-microbatch";
  ASSERT_EQ(run(), 1);
  const fs::path report = options_.report / "report.json", log = options_.report / "results.jsonl";
  const nlohmann::json good = nlohmann::json::parse(read_file(report));
  for (const std::string status : {"pass", "skipped", "unsupported", "xfail"}) {
    nlohmann::json forged = good;
    const auto count = forged["verdicts"].size();
    std::string lines;
    for (nlohmann::json& verdict : forged["verdicts"]) {
      verdict["status"] = status;
      std::string headline = status;
      std::ranges::transform(headline, headline.begin(), [](char c) { return c - 'a' + 'A'; });
      verdict["sentence"] = headline;
      lines += verdict.dump() + "\n";
    }
    forged["summary"] = {{status, count}};
    forged["exit_code"] = status == "pass" || status == "xfail" ? 0 : 3;
    write_file(report, forged.dump());
    write_file(log, lines);
    const CheckResult result = check();
    EXPECT_EQ(result.problems.size(), count) << status;
    EXPECT_EQ(exit_code(result), 2) << status;
  }
}

TEST_F(Check, ItIsToldWhatIsMissingOfAProfile) {
  ASSERT_EQ(run(), 0);
  const CheckResult result = check("smoke");
  EXPECT_EQ(result.problems, std::vector<std::string>{});
  EXPECT_FALSE(result.missing.empty());
  EXPECT_EQ(result.beyond_profile, 2);  // on 2 ranks: smoke has 4
  EXPECT_EQ(exit_code(result), 1);
  EXPECT_NE(refusal([&] { check("nonesuch"); }), "accepted");
}

TEST_F(Check, AnInterruptedRunGoesOnWhereItEnded) {
  EXPECT_EQ(run(1), -1);
  const CheckResult half = check();
  EXPECT_EQ(exit_code(half), 3) << "the second one's results are there, only its verdict is not";
  fs::remove_all(options_.report / "results/threads-2/1f1b");
  EXPECT_EQ(exit_code(check()), 3);

  options_.resume = true;
  options_.seed = 2;
  EXPECT_NE(refusal([&] { run(); }).find("seed is 2, the interrupted run had 1"), std::string::npos);
  options_.seed = 1;
  options_.selection.schedules = "gpipe";
  EXPECT_NE(refusal([&] { run(); }).find("the number of runs is 1, the interrupted run had 2"), std::string::npos);
  options_.selection.schedules = "gpipe,1f1b";
  const fs::path log = options_.report / "results.jsonl";
  const std::string first = read_file(log), place = "\"transport\":\"threads\"";
  std::string stranger = first;
  ASSERT_NE(stranger.find(place), std::string::npos) << stranger;
  write_file(log, stranger.replace(stranger.find(place), place.size(), "\"transport\":\"mpi\""));
  EXPECT_NE(refusal([&] { run(); }).find("is not among the runs of"), std::string::npos);
  write_file(log, first + "{\"case\": \"exact-m");  // it was interrupted in the middle of a line
  EXPECT_EQ(run(), 0) << said_.str();
  EXPECT_NE(said_.str().find("resumed: 1 of 2"), std::string::npos) << said_.str();
  EXPECT_TRUE(read_file(log).starts_with(first));
  EXPECT_EQ(read_jsonl(log).size(), 2u);
  EXPECT_EQ(exit_code(check()), 0);
  options_.report = folder_ / "nothing";
  EXPECT_NE(refusal([&] { run(); }).find("no interrupted run"), std::string::npos);
}

/// A waived failure is kept as well: only passes go.
TEST_F(Check, ResultsOfFailuresAloneStay) {
  options_.keep = Keep::Failures;
  options_.mutant = "drop-last-microbatch";
  options_.selection.schedules = "gpipe,1f1b";
  waive("fail");
  EXPECT_EQ(run(), 1);
  EXPECT_TRUE(fs::exists(options_.report / kRank1));
  EXPECT_EQ(exit_code(check()), 1);
  EXPECT_EQ(check().as_recorded, 0);

  options_.mutant.clear();
  options_.waivers.clear();
  EXPECT_EQ(run(), 0) << said_.str();
  for (const auto& entry : fs::recursive_directory_iterator(options_.report / "results"))
    EXPECT_NE(entry.path().extension(), ".safetensors") << entry.path();
  const CheckResult passed = check();
  EXPECT_EQ(passed.problems, std::vector<std::string>{});
  EXPECT_EQ(passed.as_recorded, 2);
  EXPECT_EQ(exit_code(passed), 0);
  options_.resume = true;
  EXPECT_EQ(run(), 0) << said_.str();
  options_.keep = Keep::All;
  EXPECT_NE(refusal([&] { run(); }).find("keep is all, the interrupted run had failures"), std::string::npos);

  // Without the option, results that are missing are a problem.
  options_.resume = false;
  EXPECT_EQ(run(), 0);
  fs::remove_all((options_.report / kRank1).parent_path());
  EXPECT_EQ(check().as_recorded, 0);
  EXPECT_EQ(exit_code(check()), 2);
}

/// The launcher failed after its last case, for one: every result is there and right.
TEST_F(Check, AFailureOutsideOfTheCasesIsTold) {
  ASSERT_EQ(run(), 0);
  const fs::path file = options_.report / "report.json";
  std::string text = read_file(file);
  const std::string none = "\"broken\": []";
  ASSERT_NE(text.find(none), std::string::npos);
  text.replace(text.find(none), none.size(), "\"broken\": [\"2 ranks failed: exit code 9\"]");
  const std::string passed = "\"exit_code\": 0";
  write_file(file, text.replace(text.find(passed), passed.size(), "\"exit_code\": 1"));
  const CheckResult result = check();
  EXPECT_EQ(result.problems, std::vector<std::string>{});
  EXPECT_EQ(result.broken, std::vector<std::string>{"2 ranks failed: exit code 9"});
  EXPECT_EQ(exit_code(result), 1);
}

TEST_F(Check, WaivedFailuresAreExpectedAndPassesAreNot) {
  options_.mutant = "drop-last-microbatch";
  options_.selection.schedules = "1f1b";
  waive("fail");
  EXPECT_EQ(run(), 0) << said_.str();
  EXPECT_NE(said_.str().find("w.toml:9 (exact-tied-* x *) matched no case"), std::string::npos) << said_.str();
  const CheckResult result = check();
  EXPECT_EQ(result.verdicts.at(0).finding.status, Status::XFail);
  EXPECT_EQ(exit_code(result), 0);
  EXPECT_EQ(result.problems, std::vector<std::string>{});

  waive("error");
  EXPECT_EQ(run(), 1);
  waive("fail", "2026-01-01");
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(read_report_json(options_.report / "report.json").broken.size(), 1u);

  options_.mutant.clear();
  waive("fail");
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(check().verdicts.at(0).finding.status, Status::XPass);
  EXPECT_EQ(exit_code(check()), 1);
}

}  // namespace
}  // namespace plumbline::conformance

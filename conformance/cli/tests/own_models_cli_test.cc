// Backends that run only custom models, from the command line: a shell script that writes hand-made recordings, with
// one fault at a time.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/cli/testing/cli_fixture.h"
#include "conformance/recording/testing/sample_recording.h"

namespace plumbline::cli {
namespace {

/// A correct backend for the models `net` and `other`; a fault redefines one of its functions. A case of the job is
/// SCHEDULE/MODEL, as in `results`.
constexpr const char* kGoodBackend = R"sh(#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
cases() { sed -n 's,^ *"results": "\(.*\)/rank"\,$,\1,p' "$1"; }
describe() {
  echo '{"protocol": 1, "name": "trainer", "version": "3", "schedules": ["1F1B", "GPipe"], "level": "own",
    "models": ["net", "other"], "delivers": ["forward", "loss", "backward", "grad", "buffer"]}'
}
answer() { printf '"supported": true'; } # case
work() { :; }                            # case
record() { mkdir -p "$out/$1" && cp "$here/$ranks/"* "$out/$1"; } # case
. "$here/fault.sh"
test $1 = describe || ranks=$(sed -n 's/^ *"ranks": \(.*\),$/\1/p' "$3")
case $1 in
  describe) describe ;;
  plan)
    comma=
    echo '['
    for c in $(cases "$3"); do
      printf '%s{"id": "%s", "schedule": "%s", ' "$comma" "${c#*/}" "${c%/*}" && answer "$c" && echo '}'
      comma=,
    done
    echo ']' ;;
  run)
    out=$5 n=0
    for c in $(cases "$3"); do
      echo "$ranks $c" >> "$here/launched"
      echo "@plumbline case $n begins"
      work "$c"
      record "$c"
      echo "@plumbline case $n done"
      n=$((n + 1))
    done ;;
esac
)sh";

class OwnModels : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::ofstream(folder_ / "backend.sh") << kGoodBackend;
    fault("");
    backend_file("");
    sample::write(folder_ / "1", sample::made(false));
    sample::write(folder_ / "2", sample::made(true));
  }
  void fault(const std::string& script) const { std::ofstream(folder_ / "fault.sh") << script << "\n"; }
  void backend_file(const std::string& more) const {
    std::ofstream(folder_ / "backend.toml") << "schema = \"plumbline-backend/1\"\nargv = [\"sh\", \"backend.sh\"]\n"
                                            << more;
  }
  conformance::ProcessResult run(const std::vector<std::string>& more = {}) const {
    fs::remove(folder_ / "launched");
    std::vector<std::string> words = {"run", "--backend", "backend.toml", "--ranks", "2", "--report", report("r")};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  }
  /// Verdicts by "MODEL SCHEDULE".
  std::map<std::string, nlohmann::json> verdicts() const {
    std::map<std::string, nlohmann::json> all;
    const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
    for (const auto& verdict : json.at("verdicts"))
      all[verdict.at("case").get<std::string>() + " " + verdict.at("schedule").get<std::string>()] = verdict;
    return all;
  }
  std::string text(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(folder_ / name).rdbuf();
    return all.str();
  }
  /// Expects that every verdict has this status, and a reason that contains this text.
  void expect_all(const std::string& status, const std::string& reason,
                  const conformance::ProcessResult& result) const {
    const auto all = verdicts();
    EXPECT_EQ(all.size(), 4u);
    for (const auto& [name, verdict] : all) {
      EXPECT_EQ(verdict.at("status"), status) << name << "\n" << result.output;
      EXPECT_NE(verdict.at("reason").get<std::string>().find(reason), std::string::npos) << name << "\n" << verdict;
    }
  }
};

TEST_F(OwnModels, AreHeldAgainstTheirRunOnOneRank) {
  const conformance::ProcessResult result = run();
  EXPECT_EQ(exit_code(result), 0) << result.output;
  expect_all("pass", "", result);
  for (const auto& [name, verdict] : verdicts()) {
    EXPECT_EQ(verdict.at("tensors"), 75) << name;
    EXPECT_EQ(verdict.at("checked"), (nlohmann::json{"forward", "loss", "backward", "grad", "buffer"})) << name;
    EXPECT_EQ(verdict.at("ranks"), 2) << name;
  }
  EXPECT_EQ(text("launched"),
            "1 one-rank/net\n1 one-rank/other\n2 1F1B/net\n2 GPipe/net\n2 1F1B/other\n2 GPipe/other\n");
  const nlohmann::json job = nlohmann::json::parse(std::ifstream(folder_ / "r/results/own-2/job.json"));
  EXPECT_EQ(job.at("cases").at(0), (nlohmann::json{{"id", "net"}, {"schedule", "1F1B"}, {"results", "1F1B/net/rank"}}));
  const std::string junit = text("r/junit.xml");
  EXPECT_NE(junit.find("<testsuites name=\"plumbline\" tests=\"4\" failures=\"0\" errors=\"0\""), std::string::npos);
  EXPECT_NE(text("r/matrix.html").find("GPipe"), std::string::npos);
  const conformance::ProcessResult again = start({"check", report("r")});
  EXPECT_EQ(exit_code(again), 0) << again.output;
}

TEST_F(OwnModels, AFaultIsNamedAndCheckFindsItAgain) {
  sample::Made wrong = sample::made(true);
  sample::element(wrong.at("0/backward/0/1/layers.0:out"), 0) += 1;
  sample::write(folder_ / "wrong", wrong);
  fault("record() { from=$ranks; test $1 != 1F1B/other || from=wrong; mkdir -p $out/$1; cp $here/$from/* $out/$1; }");
  const conformance::ProcessResult result = run();
  EXPECT_EQ(exit_code(result), 1) << result.output;
  const auto all = verdicts();
  EXPECT_EQ(all.at("other 1F1B").at("status"), "fail");
  EXPECT_EQ(all.at("other 1F1B").at("first").at("key"), "0/backward/0/1/layers.0:out");
  EXPECT_EQ(all.at("other GPipe").at("status"), "pass");
  for (const char* part :
       {"FAIL other x 1F1B (2 ranks, own): step 0, stage 0, micro-batch 1: backward `layers.0:out` f32[2] differs in 1 "
        "of "
        "2 elements; first at [0]: expected -11, got -10",
        "on the way from stage 1 to stage 0",
        "/plumbline run --case other --schedule 1F1B --backend backend.toml --ranks 2 --seed 1 --report "})
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
  EXPECT_NE(text("r/junit.xml").find("failures=\"1\""), std::string::npos);

  EXPECT_EQ(exit_code(start({"check", report("r")})), 1);
  const conformance::ProcessResult both =
      start({"check", report("r/results/own-2/1F1B/other"), "--against", report("r/results/own-1/one-rank/other")});
  EXPECT_EQ(exit_code(both), 1);
  EXPECT_NE(both.output.find("0, stage 0, micro-batch 1: backward `layers.0:out`"), std::string::npos) << both.output;
  sample::write(report("r/results/own-2/1F1B/other"), sample::made(true));
  const conformance::ProcessResult changed = start({"check", report("r")});
  EXPECT_EQ(exit_code(changed), 2) << changed.output;
  EXPECT_NE(changed.output.find("its files say \"PASS other x 1F1B"), std::string::npos) << changed.output;
}

TEST_F(OwnModels, TheRunOnOneRankMayNotChangeAfterwards) {
  sample::Made wrong = sample::made(true);
  sample::element(wrong.at("0/backward/0/1/layers.0:out"), 0) += 1;
  sample::write(folder_ / "wrong", wrong);
  const std::string record =
      "record() { from=$ranks; test $1 != 1F1B/other || from=wrong; mkdir -p $out/$1; cp "
      "$here/$from/* $out/$1; ";
  for (const std::string tamper :
       {"cp $here/2/* $one/", "mkdir $one/perturbed-1 && cp $here/1/* $one/perturbed-1", "rm $one/rank0.json"}) {
    fault(record + "one=$out/../own-1/one-rank/other; test $1 != 1F1B/other || { " + tamper + "; }; }");
    const conformance::ProcessResult result = run();
    EXPECT_EQ(exit_code(result), 1) << tamper << result.output;
    const auto all = verdicts();
    EXPECT_EQ(all.at("other 1F1B").at("status"), "error") << tamper << result.output;
    EXPECT_NE(all.at("other 1F1B").at("reason").get<std::string>().find("its run on one rank: "), std::string::npos)
        << result.output;
    EXPECT_EQ(all.at("net 1F1B").at("status"), "pass") << tamper << result.output;
  }
}

TEST_F(OwnModels, WhereTheRunOnOneRankFailsNothingElseIsStarted) {
  struct Case {
    const char* script;
    const char* status;
    const char* reason;
    int code;
  };
  backend_file("[timeouts]\ncase = 2\n");
  for (const Case& one : {
           Case{"work() { test $ranks != 1 || { echo 'ValueError: no data' >&2; exit 1; }; }", "error",
                "on one rank: ValueError: no data (exited with code 1)", 1},
           Case{"work() { test $ranks != 1 || exec sleep 1000; }", "timeout",
                "on one rank: no end of the case within 2 s", 1},
           Case{"answer() { test $ranks = 1 && printf '\"supported\": false, \"why\": \"too large\"' || printf "
                "'\"supported\": true'; }",
                "unsupported", "on one rank: too large", 3},
           Case{"record() { :; }", "error", "on one rank: said to be done, but there is no file one-rank/", 1},
           Case{"record() { mkdir -p $out/$1; cp $here/2/* $out/$1; }", "error",
                "recorded on 2 ranks, the job was for 1", 1},
           Case{"record() { mkdir -p $out/$1; cp $here/1/* $out/$1; head -c 99 $here/1/rank0.step0.safetensors > "
                "$out/$1/rank0.step0.safetensors; }",
                "error", "rank0.step0.safetensors", 1},
       }) {
    fault(one.script);
    const conformance::ProcessResult result = run();
    EXPECT_EQ(exit_code(result), one.code) << one.script << "\n" << result.output;
    expect_all(one.status, one.reason, result);
    EXPECT_EQ(text("launched").find("2 "), std::string::npos) << one.script << "\n" << text("launched");
  }
}

TEST_F(OwnModels, OfAModelThatFailsOnOneRankTheOthersAreRun) {
  fault("work() { test $ranks-$1 != 1-one-rank/net || exit 4; }");
  const conformance::ProcessResult result = run();
  EXPECT_EQ(exit_code(result), 1) << result.output;
  const auto all = verdicts();
  for (const char* schedule : {"1F1B", "GPipe"}) {
    EXPECT_EQ(all.at(std::string("net ") + schedule).at("status"), "error");
    EXPECT_EQ(all.at(std::string("other ") + schedule).at("status"), "pass");
  }
  EXPECT_EQ(text("launched"), "1 one-rank/net\n1 one-rank/other\n2 1F1B/other\n2 GPipe/other\n");
}

TEST_F(OwnModels, ACrashAHangAndHalfARecordingCostTheirRunAlone) {
  backend_file("[timeouts]\ncase = 2\n");
  for (const auto& [script, status, reason] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"work() { test $1 != 1F1B/other || kill -SEGV $$; }", "error", "killed by signal 11"},
           {"work() { test $1 != 1F1B/other || exec sleep 1000; }", "timeout", "no end of the case within 2 s"},
           {"record() { mkdir -p $out/$1; cp $here/$ranks/* $out/$1; test $1 != 1F1B/other || rm $out/$1/rank1.*; }",
            "error", "rank1.json is missing, the run had 2 ranks"},
           {"record() { mkdir -p $out/$1; test $1 != 1F1B/other || ranks=1; cp $here/$ranks/* $out/$1; ranks=2; }",
            "error", "recorded on 1 rank, the job was for 2"}}) {
    // The fault strikes only in the run on 2 ranks.
    fault("if [ $1 = run ] && ! grep -q '\"ranks\": 1,' $3; then " + script + "; fi");
    const conformance::ProcessResult result = run();
    EXPECT_EQ(exit_code(result), 1) << script << "\n" << result.output;
    for (const auto& [name, verdict] : verdicts()) {
      EXPECT_EQ(verdict.at("status"), name == "other 1F1B" ? status : "pass") << script << "\n" << result.output;
      if (name == "other 1F1B") {
        EXPECT_NE(verdict.at("reason").get<std::string>().find(reason), std::string::npos) << verdict;
      }
    }
    EXPECT_EQ(exit_code(start({"check", report("r")})), 1);
  }
}

TEST_F(OwnModels, OneThatDoesNotStartIsToldOnceAndNotJudged) {
  fault("case $1 in run) echo 'ImportError: no torch' >&2; exit 1 ;; esac");
  const conformance::ProcessResult result = run();
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_EQ(result.output.find("ImportError"), result.output.rfind("ImportError")) << result.output;
  expect_all("not-run", "run: ImportError: no torch (exited with code 1)", result);
}

TEST_F(OwnModels, GoOnWhereAnInterruptedRunEnded) {
  ASSERT_EQ(exit_code(run()), 0);
  std::istringstream log(text("r/results.jsonl"));
  std::string first;
  std::getline(log, first);
  std::ofstream(folder_ / "r" / "results.jsonl") << first << "\n";
  fs::remove(folder_ / "r" / "report.json");
  const conformance::ProcessResult result = run({"--resume"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(text("launched"), "1 one-rank/other\n2 GPipe/net\n2 1F1B/other\n2 GPipe/other\n")
      << "net was judged by its run on one rank, which stays";
  expect_all("pass", "", result);
}

TEST_F(OwnModels, CaseScheduleAndWaiversChooseAmongThem) {
  conformance::ProcessResult result = run({"--case", "o*", "--schedule", "GPipe"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(text("launched"), "1 one-rank/other\n2 GPipe/other\n");
  std::ofstream(folder_ / "waivers.toml") << "schema = \"plumbline-waivers/1\"\n[[waiver]]\ncase = \"net\"\n"
                                             "expect = \"error\"\nlink = \"https://example.org\"\nreason = \"known\"\n"
                                             "expires = 2999-01-01\n";
  fault(
      "record() { mkdir -p $out/$1; cp $here/$ranks/* $out/$1; test $ranks-${1#*/} != 2-net || rm $out/$1/rank1.*; }");
  result = run({"--waivers", "waivers.toml"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(verdicts().at("net GPipe").at("status"), "xfail");
}

TEST_F(OwnModels, BadInputIsOneLineAndCodeTwo) {
  const std::vector<std::string> backend = {"run", "--backend", "backend.toml"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = backend;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_refused({
      {with({"--ranks", "1"}), "--ranks: 1 given; a run on one rank is what models of its own are held against"},
      {with({"--profile", "core"}), "--profile: core chooses cases, and trainer runs models of its own"},
      {with({"--case", "exact-*"}),
       "--case: 'exact-*' matches nothing of its own that trainer has; there are: net, other"},
      {with({"--schedule", "zb-v"}), "--schedule: 'zb-v' matches nothing of its own that trainer has; there are: 1F1B"},
  });
  backend_file("ranks = [2, 4]\n");
  expect_refused({{backend, "its file does not allow 1 rank"}});
  backend_file("ranks = [1, 2]\n");
  expect_refused({{with({"--ranks", "4"}), "--ranks: 4 given; the backend's file says 1, 2"}});
  backend_file("ranks = [1]\n");
  expect_refused({{backend, "its file allows 1 rank only"}});
  EXPECT_FALSE(fs::exists(folder_ / "launched"));
}

TEST_F(OwnModels, DoctorTriesOneOnOneRankAndOnSeveral) {
  conformance::ProcessResult result = start({"doctor", "--backend", "backend.toml"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  for (const char* part :
       {"models of its own: net, other", "net x one-rank on 1 rank is supported; net x 1F1B on 2 ranks",
        "ok         recording: 12 names, steps: 1", "ok         first comparison: PASS net x 1F1B"})
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
  fault("test $1 != run || grep -q '\"ranks\": 1,' $3 || record() { mkdir -p $out/$1; cp $here/1/* $out/$1; }");
  result = start({"doctor", "--backend", "backend.toml"});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  EXPECT_NE(result.output.find("failed     first comparison: ERROR net x 1F1B"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace plumbline::cli

// Backends with one fault each, as shell scripts: what becomes of the case, of the others, and of stray processes.
#include "conformance/run/supervise.h"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "conformance/protocol/command/command_backend.h"
#include "conformance/protocol/report_folder.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/refusal.h"
#include "runtime/transport/flight/flight_log.h"

namespace plumbline::conformance {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A backend that does everything right; a fault defines one of its functions anew.
constexpr const char* kGoodBackend = R"sh(#!/bin/sh
here=$(dirname "$0") verb=$1
ids() { sed -n 's/^ *"id": "\(.*\)",$/\1/p' "$1"; }
answer() { printf '{"id": "%s", "schedule": "gpipe", "supported": true}' "$1"; }
plan() {
  comma=
  echo '['
  for id in $(ids "$1"); do printf '%s' "$comma"; answer "$id"; comma=,; done
  echo ']'
}
begin() { :; }
work() { :; }
write() {
  mkdir -p "$out/gpipe/$1" && cp "$here/good" "$out/gpipe/$1/t" && mv "$out/gpipe/$1/t" "$out/gpipe/$1/rank0.safetensors"
}
finish() { :; }
. "$here/fault.sh"
case $1 in
  plan) plan "$3" ;;
  run)
    out=$5 n=0
    echo run >> "$here/launches"
    begin
    for id in $(ids "$3"); do
      echo "@plumbline case $n begins"
      work "$id"
      write "$id"
      echo "@plumbline case $n done"
      n=$((n + 1))
    done
    finish ;;
esac
)sh";

/// What is heard of a job, by case: "done", or status and reason.
class Heard : public JobObserver {
 public:
  explicit Heard(size_t cases) : of(cases) {}
  void begins(size_t) override {}
  void done(size_t index) override { of.at(index) += "done"; }
  void failed(size_t index, Status status, const std::string& reason) override {
    of.at(index) += std::string(status_name(status)) + ": " + reason;
  }
  void broken(const std::string& reason) override { outside.push_back("broken: " + reason); }
  void not_started(const std::string& reason) override { outside.push_back("not started: " + reason); }

  std::vector<std::string> of;
  std::vector<std::string> outside;
};

struct Fault {
  const char* name;
  const char* script;
  std::map<size_t, std::string> cases;    ///< what is heard of these; of the others "done"
  std::vector<std::string> outside = {};  ///< and beside the cases
  int launches = 2;                       ///< of the verb run
};

class SupervisedFault : public ::testing::TestWithParam<Fault> {};

constexpr const char* kHidden =
    "error: ended with exit code 0 without running it; \"[rank0]: @plumbline case 0 begins\" on standard output is no "
    "event, "
    "since other words precede it; let the launcher print lines without its labels";

bool found_by_time(const Fault& fault) {
  const auto by_time = [](const std::string& said) { return said.find("within 2 s") != std::string::npos; };
  return std::ranges::any_of(fault.outside, by_time) ||
         std::ranges::any_of(fault.cases, [&](const auto& item) { return by_time(item.second); });
}

/// `text` with OUT for the folder.
std::string with_out(std::string text, const fs::path& out) {
  for (size_t at = 0; (at = text.find(out.string())) != std::string::npos;)
    text.replace(at, out.string().size(), "OUT");
  return text;
}

TEST_P(SupervisedFault, CostsItsCaseAloneAndLeavesNoProcess) {
  const Fault& fault = GetParam();
  const TemporaryFolder folder;
  const fs::path program = folder / "backend.sh";
  std::ofstream(program) << kGoodBackend;
  fs::permissions(program, fs::perms::owner_all);
  std::ofstream(folder / "fault.sh") << fault.script << "\n";
  transport::flight::FlightLog(folder / "rank0").add({.what = "barrier"});
  write_tensor_file(folder / "good", {{"0/loss/-/0/loss", make_f64({}, {1.0})}});
  const Job job{.ranks = 1, .cases = {{"c0", "gpipe"}, {"c1", "gpipe"}, {"c2", "gpipe"}, {"c3", "gpipe"}}};
  BackendSpec spec{.name = "scripted", .given = "x", .argv = {program.string()}};
  // Only faults that are found by their time have little of it: elsewhere the machine may be slow.
  spec.start = spec.one_case = found_by_time(fault) ? 2s : 60s;
  Heard heard(job.cases.size());
  const fs::path out = folder / "out";
  supervise(CommandBackend(spec), job, out, heard);

  std::vector<std::string> expected(job.cases.size(), "done");
  for (const auto& [index, what] : fault.cases) expected[index] = what;
  for (std::string& what : heard.of) what = with_out(what, out);
  for (std::string& what : heard.outside) what = with_out(what, out);
  EXPECT_EQ(heard.of, expected);
  ASSERT_EQ(heard.outside.size(), fault.outside.size());
  for (size_t i = 0; i < fault.outside.size(); ++i)
    EXPECT_TRUE(heard.outside[i].starts_with(fault.outside[i])) << heard.outside[i];
  for (size_t i = 0; i < job.cases.size(); ++i)
    if (heard.of[i] == "done") {
      EXPECT_EQ(read_tensor_file(result_files(out, job.cases[i]).at(0)).size(), 1u);
    }
  int launches = 0;
  std::ifstream lines(folder / "launches");
  for (std::string line; std::getline(lines, line);) ++launches;
  EXPECT_EQ(launches, fault.launches);
  // Faults write the ids of what they leave behind to "pids".
  std::ifstream pids(folder / "pids");
  for (pid_t pid = 0; pids >> pid;) EXPECT_TRUE(testing::ends(pid)) << "process " << pid;
}

const std::map<size_t, std::string> kNothing = {{0, ""}, {1, ""}, {2, ""}, {3, ""}};

INSTANTIATE_TEST_SUITE_P(
    Faults, SupervisedFault,
    ::testing::Values(
        Fault{"none", "", {}, {}, 1},
        Fault{"ExitsInPlan",
              "plan() { echo 'no licence' >&2; exit 7; }",
              kNothing,
              {"not started: scripted: plan: no licence (exited with code 7)"},
              0},
        Fault{"PlanIsGarbage", "plan() { echo '[{]'; }", kNothing, {"not started: scripted: plan is not JSON: "}, 0},
        Fault{"PlanTalks",
              "plan() { echo loading; echo '[]'; }",
              kNothing,
              {"not started: scripted: plan: \"loading\" on standard output before the JSON; expected one "},
              0},
        Fault{"PlanHangs",
              "plan() { exec sleep 1000; }",
              kNothing,
              {"not started: scripted: plan: no end within 2 s"},
              0},
        Fault{"PlanLeavesACaseOut",
              R"sh(ids() { sed -n 's/^ *"id": "\(.*\)",$/\1/p' "$1" | { test $verb = run && cat || grep -v c1; }; })sh",
              {{1, "error: plan gave no answer for it"}},
              {},
              1},
        Fault{"PlanSaysUnsupported",
              R"sh(answer() {
  printf '{"id": "%s", "schedule": "gpipe", ' "$1"
  test $1 = c3 && printf '"supported": false, "why": "no W"}' || printf '"supported": true}'
})sh",
              {{3, "unsupported: no W"}},
              {},
              1},
        Fault{"HangsAtStart",
              "begin() { exec sleep 1000; }",
              kNothing,
              {"not started: scripted: run: no event within 2 s"},
              1},
        Fault{"CrashesAtStart",
              "begin() { echo 'ImportError: no torch' >&2; exit 1; }",
              kNothing,
              {"not started: scripted: run: ImportError: no torch (exited with code 1)"},
              1},
        Fault{"EndsBeforeItsEventsArrive",
              R"sh(begin() { test -e "$here/once" || {
  : > "$here/once"; mkdir -p "$out/flight" && cp "$here/rank0" "$out/flight" && kill -KILL $$; }; })sh",
              {{0, "error: killed by signal 9 (Killed)"}}},
        Fault{"EndsWhereAnEarlierStartLeftALog",
              R"sh(begin() { test ! -e "$here/once" || { echo 'no licence' >&2; exit 7; }
  : > "$here/once"; mkdir -p "$out/flight" && cp "$here/rank0" "$out/flight"; }
work() { test $1 != c1 || kill -KILL $$; })sh",
              {{1, "error: killed by signal 9 (Killed)"}, {2, ""}, {3, ""}},
              {"broken: scripted on 1 rank did not start again: no licence (exited with code 7)"}},
        Fault{"HangsInCase",
              "work() { test $1 != c1 || exec sleep 1000; }",
              {{1, "timeout: no end of the case within 2 s"}}},
        Fault{"AnswersAfterItsDeadline",
              "work() { test $1 != c1 || { trap '' TERM; sleep 2.5; }; }",
              {{1, "timeout: no end of the case within 2 s"}}},
        Fault{"FloodsWithoutNewline",
              "work() { test $1 != c1 || exec tr '\\0' x < /dev/zero; }",
              {{1, "timeout: no end of the case within 2 s"}}},
        Fault{"CrashesInCase",
              "work() { test $1 != c1 || kill -SEGV $$; }",
              {{1, "error: killed by signal 11 (Segmentation fault)"}}},
        Fault{"RaisesInCase",
              "work() { test $1 != c1 || { echo 'ValueError: bad shape' >&2; exit 1; }; }",
              {{1, "error: ValueError: bad shape (exited with code 1)"}}},
        Fault{"SaysThatACaseFailed",
              R"sh(
echo() {
  case "$*" in
    *'case 1 done') printf '@plumbline case 1 failed: no room\n' ;;
    *) printf '%s\n' "$*" ;;
  esac
})sh",
              {{1, "error: no room"}},
              {},
              1},
        Fault{"LeavesQuietlyInCase",
              "work() { test $1 != c1 || exit 0; }",
              {{1, "error: ended in the middle of it, with exit code 0"}}},
        Fault{
            "StopsEarly",
            R"sh(ids() { sed -n 's/^ *"id": "\(.*\)",$/\1/p' "$1" | { test $verb = plan && cat || grep -v c3; }; })sh",
            {{3, "error: ended with exit code 0 without running it"}},
            {},
            1},
        Fault{"SaysWhatCannotBeRead",
              "work() { test $1 != c1 || { echo '@plumbline case 1 is fine'; sleep 1000; }; }",
              {{1, "error: unknown event 'case 1 is fine'"}}},
        Fault{"SpeaksOfACaseTwice",
              "work() { test $1 != c1 || echo '@plumbline case 0 done'; }",
              {{1,
                "error: `the end of case 0` came a second time; only one process may print events: do two act as rank "
                "0?"},
               {2, ""},
               {3, ""}},
              {"broken: scripted on 1 rank failed: `the end of case 0` came a second time; "},
              1},
        Fault{
            "BeginsACaseTwice",
            "work() { test $1 != c1 || echo '@plumbline case 1 begins'; }",
            {{1, "error: `case 1 begins` came a second time; only one process may print events: do two act as rank 0?"},
             {2, ""},
             {3, ""}},
            {"broken: scripted on 1 rank failed: `case 1 begins` came a second time; "},
            1},
        Fault{"SharesALineWithASecondRankZero",
              "work() { test $1 != c1 || printf '@plumbline case 0 done'; }",
              {{1,
                "error: two events on one line, 'case 0 done@plumbline case 1 done'; only one process may print "
                "events: do two act as rank 0?"},
               {2, ""},
               {3, ""}},
              {"broken: scripted on 1 rank failed: two events on one line, "},
              1},
        Fault{"HasASecondRankZeroThatComesLater",
              "finish() { echo '@plumbline case 3 begins'; sleep 1000; }",
              {},
              {"broken: scripted on 1 rank failed: `case 3 begins` came a second time; "},
              1},
        Fault{"HidesItsEvents",
              "echo() { case $1 in @*) printf '[rank0]: %s\\n' \"$*\" ;; *) printf '%s\\n' \"$*\" ;; esac; }",
              {{0, kHidden}, {1, kHidden}, {2, kHidden}, {3, kHidden}},
              {},
              1},
        Fault{
            "HidesItsEventsAndHangs",
            "begin() { printf '[1,0]<stdout>:@plumbline case 0 begins\\n'; exec sleep 1000; }",
            kNothing,
            {"not started: scripted: run: no event within 2 s; \"[1,0]<stdout>:@plumbline case 0 begins\" on standard "
             "output is no event, since other words precede it"},
            1},
        Fault{"FloodsWithLines",
              "work() { test $1 != c1 || exec yes '@plumbline is no event'; }",
              {{1, "error: unknown event 'is no event'"}}},
        Fault{"FloodsWithoutEnd",
              "work() { test $1 != c1 || { yes why >&2 & exec yes words; }; }",
              {{1, "timeout: no end of the case within 2 s"}}},
        Fault{"IgnoresSigtermWithItsChildren",
              "work() { test $1 != c1 || { trap '' TERM; sleep 1000 & echo $! >> $here/pids; echo $$ >> $here/pids; "
              "wait; wait; }; }",
              {{1, "timeout: no end of the case within 2 s"}}},
        Fault{"LeavesADaemonWithoutItsEnvironment",
              "work() { env -i setsid sh -c 'trap \"\" TERM; echo $$ >> $1; while :; do sleep 1000; done' sh "
              "$here/pids & "
              "while ! test -s $here/pids; do sleep 0.01; done; }",
              {},
              {},
              1},
        Fault{"KillsItsGuard",
              "work() { test $1 != c1 || { kill -9 $PPID; sleep 60; }; }",
              {{1, "error: killed by signal 9 (Killed)"}}},
        Fault{
            "LinksItsFolderElsewhere",
            "write() { test $1 != c1 && { mkdir -p $out/gpipe/$1; cp $here/good $out/gpipe/$1/rank0.safetensors; } || "
            "{ mkdir -p $here/else; cp $here/good $here/else/rank0.safetensors; ln -s $here/else $out/gpipe/c1; }; }",
            {{1, "error: cannot read OUT/gpipe/c1: it is a symbolic link; expected a folder"}},
            {},
            1},
        Fault{"PutsAFolderInThePlaceOfTheJob",
              "work() { test $1 != c1 || { rm $out/job.json; mkdir $out/job.json; exit 3; }; }",
              {{1, "error: exited with code 3"}, {2, ""}, {3, ""}},
              {"broken: scripted on 1 rank did not start again: cannot write OUT/job.json: "},
              1},
        Fault{"PutsFifosInThePlaceOfItsLogs",
              "work() { mkdir -p $out/logs/gpipe/$1; mkfifo $out/logs/gpipe/$1/backend.log; echo words; }",
              {},
              {},
              1},
        Fault{"WritesElsewhere",
              "write() { test $1 = c1 && cp $here/good $here/rank0.safetensors || { mkdir -p $out/gpipe/$1; "
              "cp $here/good $out/gpipe/$1/rank0.safetensors; }; }",
              {{1, "error: said to be done, but there is no file gpipe/c1/rank0.safetensors nor of another rank"}},
              {},
              1},
        Fault{"WritesNoFile",
              "write() { test $1 = c1 || { mkdir -p \"$out/gpipe/$1\"; cp \"$here/good\" "
              "\"$out/gpipe/$1/rank0.safetensors\"; }; }",
              {{1, "error: said to be done, but there is no file gpipe/c1/rank0.safetensors nor of another rank"}},
              {},
              1},
        Fault{"LeavesAChild",
              "work() { sleep 1000 & echo $! >> $here/pids; setsid sleep 1001 & echo $! >> $here/pids; }",
              {},
              {},
              1},
        Fault{"LeavesAChildAndCrashes",
              "work() { test $1 != c1 || { sleep 1000 & echo $! >> $here/pids; kill -SEGV $$; }; }",
              {{1, "error: killed by signal 11 (Segmentation fault)"}}},
        Fault{"FailsAtItsEnd",
              "finish() { echo 'leak' >&2; exit 5; }",
              {},
              {"broken: scripted on 1 rank failed between two cases: leak (exited with code 5)"},
              1},
        Fault{"DoesNotStartAgain",
              "begin() { test ! -e $here/was || exit 9; : > $here/was; }; work() { test $1 != c1 || exit 8; }",
              {{1, "error: exited with code 8"}, {2, ""}, {3, ""}},
              {"broken: scripted on 1 rank did not start again: exited with code 9"}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

class Attempts : public ::testing::Test {
 protected:
  Attempts() {
    std::ofstream(folder_ / "backend.sh") << kGoodBackend;
    fs::permissions(folder_ / "backend.sh", fs::perms::owner_all);
    write_tensor_file(folder_ / "good", {{"0/loss/-/0/loss", make_f64({}, {1.0})}});
  }
  /// What is heard of three cases; `fault` as in the faults above.
  std::vector<std::string> supervised(const std::string& fault) {
    std::ofstream(folder_ / "fault.sh") << fault << "\n";
    Heard heard(job_.cases.size());
    const BackendSpec spec{.name = "scripted", .given = "x", .argv = {(folder_ / "backend.sh").string()}};
    supervise(CommandBackend(spec), job_, out_, heard);
    for (std::string& what : heard.of) what = with_out(what, out_);
    return heard.of;
  }
  /// Results of a rank that an earlier attempt has left.
  void leave(const fs::path& folder, int rank) const {
    fs::create_directories(folder);
    fs::copy_file(folder_ / "good", folder / ("rank" + std::to_string(rank) + ".safetensors"));
  }
  size_t results(size_t index) const { return result_files(out_, job_.cases[index]).size(); }

  const TemporaryFolder folder_;
  const fs::path out_ = folder_ / "out";
  const Job job_{.ranks = 2, .cases = {{"c0", "gpipe"}, {"c1", "gpipe"}, {"c2", "gpipe"}}};
};

TEST_F(Attempts, ResultsOfAnEarlierRunAreNotJudged) {
  for (size_t i = 0; i < 3; ++i)
    for (const int rank : {0, 1}) leave(out_ / "gpipe" / job_.cases[i].id, rank);
  leave(out_ / "gpipe" / "judged", 0);
  EXPECT_EQ(supervised("write() { test $1 = c2 || { mkdir -p $out/gpipe/$1; cp $here/good "
                       "$out/gpipe/$1/rank0.safetensors; }; }"),
            (std::vector<std::string>{
                "done", "done",
                "error: said to be done, but there is no file gpipe/c2/rank0.safetensors nor of another rank"}));
  EXPECT_EQ(results(0), 1u);
  EXPECT_TRUE(fs::exists(out_ / "gpipe" / "judged" / "rank0.safetensors")) << "it is no case of the job";
}

/// A rank that is ahead has written results of case 2 when another one ends in case 1.
TEST_F(Attempts, ResultsOfAnEarlierStartAreNotJudged) {
  EXPECT_EQ(supervised("work() { test $1 != c1 || { mkdir -p $out/gpipe/c2; "
                       "cp $here/good $out/gpipe/c2/rank1.safetensors; exit 3; }; }"),
            (std::vector<std::string>{"done", "error: exited with code 3", "done"}));
  EXPECT_EQ(results(0), 1u) << "its verdict is about them";
  EXPECT_EQ(results(2), 1u);
}

TEST_F(Attempts, NothingIsRemovedThroughALink) {
  const fs::path elsewhere = folder_ / "elsewhere";
  leave(elsewhere / "c0", 0);
  fs::create_directories(out_ / "gpipe");
  fs::create_directory_symlink(elsewhere / "c0", out_ / "gpipe" / "c0");
  EXPECT_EQ(supervised(""), (std::vector<std::string>{"done", "done", "done"}));
  EXPECT_FALSE(fs::is_symlink(out_ / "gpipe" / "c0"));
  EXPECT_TRUE(fs::exists(elsewhere / "c0" / "rank0.safetensors"));

  fs::remove_all(out_ / "gpipe");
  fs::create_directory_symlink(elsewhere, out_ / "gpipe");
  const std::string wrong = "error: cannot read OUT/gpipe: it is a symbolic link; expected a folder";
  EXPECT_EQ(supervised(""), (std::vector<std::string>{wrong, wrong, wrong}));
  EXPECT_TRUE(fs::exists(elsewhere / "c0" / "rank0.safetensors"));
}

TEST(DescribeVerb, IsReadOrToldInOneLine) {
  const TemporaryFolder folder;
  const fs::path program = folder / "backend.sh";
  BackendSpec spec{.name = "scripted", .given = "x", .argv = {program.string()}};
  for (const auto& [script, expected] : std::vector<std::pair<std::string, std::string>>{
           {"echo hello", "scripted: describe: \"hello\" on standard output is not JSON; expected one "},
           {"echo '{'", "scripted: describe is not JSON: "},
           {"exit 3", "scripted: describe: exited with code 3"},
           {"exec sleep 1000", "scripted: describe: no end within 2 s"},
           {"echo '{}'", "scripted: describe: expected an object with \"protocol\""},
           {"exec tr '\\0' x < /dev/zero", "scripted: describe: more than 64 MiB on standard output"}}) {
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
    spec.start = expected.ends_with("within 2 s") ? 2s : 60s;
    testing::expect_line(testing::failure<BackendError>([&] { CommandBackend(spec).describe(); }), expected);
  }
  std::ofstream(program) << "#!/bin/sh\necho warning >&2\necho '{\"protocol\": 1, \"name\": \"n\", \"version\": \"v\", "
                            "\"schedules\": \"any\", \"delivers\": [\"loss\"], \"level\": \"program\"}'\n";
  EXPECT_EQ(CommandBackend(spec).describe().name, "n") << "stderr does not belong to the answer";
  spec.argv = {"/no/such/program"};
  EXPECT_THROW(CommandBackend(spec).describe(), BackendError);
}

}  // namespace
}  // namespace plumbline::conformance

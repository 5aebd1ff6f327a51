#include "conformance/protocol/command/command_backend.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "conformance/protocol/command/job_failure.h"
#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/testing/refusal.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Shell scripts replace programs.
class CommandBackendTest : public ::testing::Test {
 protected:
  std::string script(const std::string& name, const std::string& body) {
    const fs::path path = folder / name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  JobResult run(const std::string& body) {
    spec.argv = {script("program", body)};
    return run();
  }
  JobResult run() {
    return CommandBackend(spec, transport).run(job, out, [&](const JobEvent& event) {
      events.push_back(to_string(event));
    });
  }

  const TemporaryFolder folder;
  fs::path out = folder / "results of \"this\" run";
  Job job{.ranks = 2, .cases = std::vector<JobCase>(2000), .throughput = std::vector<JobThroughput>(2)};
  BackendSpec spec{.name = "program"};
  TransportKind transport = TransportKind::Own;
  std::vector<std::string> events;
};

TEST(JobEvents, AreReadBack) {
  for (const std::string line :
       {"case 0 begins", "case 3 done", "case 4 failed: no room: 3 done", "throughput 12 begins", "throughput 7 done"})
    EXPECT_EQ(to_string(parse_event(line)), line);
  EXPECT_EQ(to_string(parse_event("case 18446744073709551615 done")), "case 18446744073709551615 done");
}

TEST(JobEvents, AnythingElseIsRefused) {
  for (const std::string line : {"",
                                 "case",
                                 "case ",
                                 "case 3",
                                 "case 3 ",
                                 "case 3 don",
                                 "case 3 done ",
                                 "case 3 done\r",
                                 "case 3  done",
                                 "case  3 done",
                                 " case 3 done",
                                 "case -3 done",
                                 "case +3 done",
                                 "case 3.0 done",
                                 "case x done",
                                 "case done",
                                 "case 3 ends",
                                 "case 3 failed",
                                 "case 3 failed: ",
                                 "throughput 3 failed: no room",
                                 "case 3 begins done",
                                 "case 18446744073709551616 done",
                                 "Case 3 done",
                                 "throughput case 3 done",
                                 "throughput3 done",
                                 "step 3 done",
                                 "case 3 done\ncase 4 done"}) {
    EXPECT_EQ(testing::failure([&] { parse_event(line); }), "unknown event '" + one_line(line) + "'");
  }
}

TEST_F(CommandBackendTest, EventsArriveInOrderAndAreKeptOutOfTheOutput) {
  const JobResult result = run(R"(
printf 'no'; printf 'ise\n\n@plumb'; printf 'why: @plumbline case' >&2; printf 'line case 1'; printf ' beg'; printf 'ins\nnoise @plumbline case 9 done\n'
printf '@plumbline case 1 done\n@plumbline throughput 0 begins\nbetween\n@plumbline throughput 0 done\n@plumbline'
printf 's are fruit\nlast')");
  EXPECT_EQ(events,
            (std::vector<std::string>{"case 1 begins", "case 1 done", "throughput 0 begins", "throughput 0 done"}));
  EXPECT_EQ(result.output, "noise\n\nnoise @plumbline case 9 done\nbetween\n@plumblines are fruit\nlast");
  EXPECT_EQ(result.errors, "why: @plumbline case") << "stderr has no events";
  EXPECT_TRUE(result.succeeded);
  EXPECT_TRUE(result.any_event);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.ending, "exited with code 0");
}

TEST_F(CommandBackendTest, ManyEventsInPiecesOfAnySize) {
  const JobResult result = run(R"(
i=0
while [ $i -lt 2000 ]; do
  printf 'noise %d\n@plumbline case %d begins\n@plum' $i $i
  printf 'bline case %d done\n' $i
  i=$((i + 1))
done)");
  ASSERT_EQ(events.size(), 4000u);
  std::string noise;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(events[2 * i], "case " + std::to_string(i) + " begins");
    ASSERT_EQ(events[2 * i + 1], "case " + std::to_string(i) + " done");
    noise += "noise " + std::to_string(i) + "\n";
  }
  EXPECT_EQ(result.output, noise);
}

TEST_F(CommandBackendTest, ALongReasonIsReadInPieces) {
  // 200,000 characters, then a pause before the end of the line, so that it does not come in one piece.
  const JobResult result = run(R"(
printf '@plumbline case 0 failed: '; tr '\0' x < /dev/zero | head -c 200000; sleep 0.2; echo
tr '\0' y < /dev/zero | head -c 200000; sleep 0.2; echo)");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].substr(0, 17), "case 0 failed: xx");
  EXPECT_EQ(result.output.find('x'), std::string::npos);
}

TEST_F(CommandBackendTest, AnEventWithoutAnEndOfLineIsIgnored) {
  const JobResult result = run("printf 'why\\n@plumbline case 7 done'; exit 1");
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(result.output, "why\n");
}

TEST_F(CommandBackendTest, EndingsAreReported) {
  const JobResult failed = run("echo reason >&2; exit 3");
  EXPECT_FALSE(failed.succeeded || failed.timed_out);
  EXPECT_EQ(failed.ending, "exited with code 3");
  EXPECT_EQ(failed.errors, "reason\n");
  EXPECT_EQ(reason_of(failed), "reason (exited with code 3)");
  const JobResult killed = run("echo '@plumbline case 0 begins'; kill -SEGV $$");
  EXPECT_FALSE(killed.succeeded || killed.timed_out);
  EXPECT_EQ(killed.ending, "killed by signal 11 (Segmentation fault)");
  EXPECT_EQ(events.size(), 1u) << "the events before the end count";
  spec.argv = {(folder / "none").string()};
  const JobResult missing = run();
  EXPECT_FALSE(missing.succeeded || missing.timed_out);
  EXPECT_EQ(missing.ending, "cannot start " + (folder / "none").string() + ": No such file or directory");
}

TEST_F(CommandBackendTest, SilenceEndsTheProgram) {
  spec.silence = 2s;
  const JobResult result = run("echo '@plumbline case 4 begins'; echo here; exec sleep 1000");
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.succeeded);
  EXPECT_EQ(result.ending, "no output for 2 s");
  EXPECT_EQ(result.output, "here\n");
  EXPECT_EQ(events, std::vector<std::string>{"case 4 begins"});
}

TEST_F(CommandBackendTest, EventsAfterTheDeadlineAreIgnored) {
  spec.one_case = 2s;
  const JobResult result = run(R"(
trap '' TERM
echo '@plumbline case 1 begins'
sleep 2.5
echo '@plumbline case 1 done')");
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.ending, "no end of the case within 2 s");
  EXPECT_EQ(events, std::vector<std::string>{"case 1 begins"});
}

// An event at about the deadline, after which the program ends by itself: it came in time, or the time-out is told.
TEST_F(CommandBackendTest, AnEventThatIsIgnoredIsATimeout) {
  const auto begin = std::chrono::steady_clock::now();
  run("echo '@plumbline case 0 begins'");
  std::chrono::duration<double, std::milli> limit = std::chrono::steady_clock::now() - begin;
  for (int attempt = 0; attempt < 200; ++attempt) {
    spec.start = std::max(1ms, std::chrono::round<std::chrono::milliseconds>(limit));
    events.clear();
    const JobResult result = run("echo '@plumbline case 0 begins'");
    EXPECT_EQ(result.timed_out, events.empty()) << limit.count() << " ms: " << result.ending;
    limit *= events.empty() ? 1.1 : 0.9;  // half of the events come in time, whatever the machine's speed
  }
}

TEST_F(CommandBackendTest, AMalformedEventEndsTheProgram) {
  for (const auto& [event, reason] : std::vector<std::pair<std::string, std::string>>{
           {"case x", "unknown event 'case x'"}, {"case 2000 begins", "an event about number 2000 of 2000"}}) {
    const fs::path pid_file = folder / "pid";
    const JobResult result =
        run("echo $$ > '" + pid_file.string() + "'; echo '@plumbline " + event + "'; exec sleep 1000");
    EXPECT_FALSE(result.succeeded || result.timed_out || result.any_event);
    EXPECT_EQ(reason_of(result), reason);
    pid_t pid = 0;
    std::ifstream(pid_file) >> pid;
    ASSERT_GT(pid, 0);
    EXPECT_EQ(kill(pid, 0), -1) << "still there";
  }
}

TEST_F(CommandBackendTest, WhatRanksLackIsSaidWhereTheyBeganNothing) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {200, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  const std::string at_start = reason_of(run("exit 1")),
                    later = reason_of(run("echo @plumbline case 0 begins; exit 1"));
  spec.argv = {"/no/such/program"};
  const std::string missing = reason_of(run());
  spec.argv = {script("program", "exit 1")};
  const std::string described = testing::failure([&] { CommandBackend(spec).describe(); });
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(at_start,
            "exited with code 1; a process may open 200 files, MPI and cases need 256; raise the limit: "
            "ulimit -n 256");
  EXPECT_EQ(later, "exited with code 1");
  EXPECT_EQ(missing.find("ulimit"), std::string::npos) << missing;
  EXPECT_EQ(described, "program: describe: exited with code 1");
}

TEST_F(CommandBackendTest, AnExceptionOfTheCallerEndsTheProgramAndIsRethrown) {
  spec.argv = {script("program", "echo '@plumbline case 0 done'; exec sleep 1000")};
  EXPECT_THROW(CommandBackend(spec).run(job, out, [](const JobEvent&) { throw Error("enough"); }), Error);
}

TEST(JobEvents, ANulDoesNotEndTheMessage) {
  EXPECT_EQ(testing::failure([] { parse_event(std::string_view("case 3 done\0 or not", 18)); }),
            "unknown event 'case 3 done\\x00 or no'");
}

TEST_F(CommandBackendTest, LongReasonsOfTheBackendAreShortened) {
  const std::string most(500, 'x'), rest = "... (2500 more characters)";
  const std::string reason = "$(head -c 3000 /dev/zero | tr '\\0' x)";
  EXPECT_EQ(reason_of(run("echo " + reason + " >&2; exit 1")), most + rest + " (exited with code 1)");
  EXPECT_EQ(reason_of(run("echo plumbline: " + reason + " >&2; exit 1")),
            "plumbline: " + most.substr(11) + "... (2511 more characters)");
  run("echo @plumbline case 0 begins; echo @plumbline case 0 failed: " + reason);
  EXPECT_EQ(events.back(), "case 0 failed: " + most + rest);
}

TEST_F(CommandBackendTest, AnAnswerIsReadWholeUpToItsLimit) {
  const std::string description =
      R"({"protocol": 1, "name": "N", "version": "1", "schedules": "any", "level": "stage",)"
      R"( "delivers": ["loss"], "features": ["%s"]})";
  spec.argv = {script("program", "printf '" + description + "' $(head -c 3000000 /dev/zero | tr '\\0' x)")};
  EXPECT_EQ(CommandBackend(spec, transport).describe().features.at(0).size(), 3'000'000u);
  spec.argv = {script("program", "yes")};
  EXPECT_EQ(testing::failure([&] { CommandBackend(spec, transport).describe(); }),
            "program: describe: more than 64 MiB on standard output");
}

TEST_F(CommandBackendTest, TheProgramGetsTheJob) {
  job.ranks = 3;
  job.seed = 18446744073709551615u;
  job.timeout_seconds = 2.5;
  job.mutant = "a \"mutant\"";
  job.recompute = "except-last";
  job.remat = "bytes", job.remat_policy = "seed";
  job.cases = {{"mlp", "gpipe"}, {"tied", "1f1b", "0F0,0B0", "cases/tied"}};
  job.throughput = {{"gpipe", "", 5, 10, 0, 8, 3}};
  spec.foreign = false;
  transport = TransportKind::Threads;
  spec.argv = {script("program", "for word in \"$@\"; do echo \"$word\"; done; echo $OMP_NUM_THREADS"), "backend"};
  const JobResult result = run();
  EXPECT_EQ(result.output, "backend\nrun\n--job\n" + (out / "job.json").string() + "\n--out\n" + out.string() +
                               "\n--transport\nthreads\n1\n");
  const Job read = read_job(out / "job.json");
  EXPECT_EQ(read.ranks, 3);
  EXPECT_EQ(read.seed, job.seed);
  EXPECT_EQ(read.timeout_seconds, 2.5);
  EXPECT_EQ(read.mutant, job.mutant);
  EXPECT_EQ(read.recompute, job.recompute);
  EXPECT_EQ(read.remat + read.remat_policy, "bytesseed");
  ASSERT_EQ(read.cases.size(), 2u);
  EXPECT_EQ(read.cases[1].id + read.cases[1].schedule, "tied1f1b");
  EXPECT_EQ(read.cases[1].csv + " " + read.cases[1].folder, "0F0,0B0 cases/tied");
  EXPECT_EQ(read.cases[1].results, "1f1b/tied/rank");
  ASSERT_EQ(read.throughput.size(), 1u);
  EXPECT_EQ(read.throughput[0].backward_ms, 10);
}

TEST_F(CommandBackendTest, WithMpiTheCommandStartsWithTheLauncher) {
  script("mpirun", "printf '%s ' \"$@\"");
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  out = folder / "out";
  spec = find_backend("runtime", "/some/program", 60);
  transport = TransportKind::Mpi;
  job.ranks = 5;
  const JobResult result = run();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(result.output, "-n 5 /some/program backend run --job " + (out / "job.json").string() + " --out " +
                               out.string() + " --transport mpi ");
}

TEST_F(CommandBackendTest, AJobForAnotherBackendHasNothingOfOurRuntime) {
  job = {.ranks = 2, .seed = 7, .timeout_seconds = 1.5, .cases = {{"mlp", "gpipe", "", "cases/mlp"}}};
  write_job(folder / "job.json", job);
  EXPECT_EQ(read_file(folder / "job.json"), R"({
 "cases": [
  {
   "folder": "cases/mlp",
   "id": "mlp",
   "results": "gpipe/mlp/rank",
   "schedule": "gpipe"
  }
 ],
 "format": "plumbline-job/1",
 "ranks": 2,
 "seed": 7,
 "timeout_seconds": 1.5
}
)");
  std::ofstream(folder / "job.json") << R"({"format": "plumbline-job/2"})";
  EXPECT_THROW(read_job(folder / "job.json"), InputError);
}

TEST_F(CommandBackendTest, AJobLeadsNowhereButBelowItsOutput) {
  const auto refusal = [](const std::string& id, const std::string& results) {
    return testing::refusal([&] {
      parse_job(R"({"format": "plumbline-job/1", "ranks": 1, "seed": 0, "timeout_seconds": 1, "cases": [{"id": ")" +
                    id + R"(", "schedule": "gpipe", "results": ")" + results + R"("}]})",
                "J");
    });
  };
  EXPECT_EQ(refusal("mlp", "gpipe/mlp/rank"), "accepted");
  for (const std::string bad : {"../mlp/rank", "gpipe/../../rank", "/tmp/rank"}) {
    testing::expect_part(refusal("mlp", bad), "a path without \"..\" below the output");
    testing::expect_part(refusal(bad, "gpipe/mlp/rank"), "a path without \"..\" below the output");
  }
}

TEST(ResultFiles, AreSortedByTheNumberOfTheRank) {
  const TemporaryFolder folder;
  const JobCase c{.id = "mlp", .schedule = "1f1b"};
  EXPECT_TRUE(result_files(folder.path(), c).empty());
  fs::create_directories(folder / "1f1b" / "mlp");
  for (const char* name : {"rank10.safetensors", "rank2.safetensors", "rank.safetensors", "rank1.safetensors.tmp",
                           "rank1x.safetensors", "rank-1.safetensors", "notes.txt"})
    std::ofstream(folder / "1f1b" / "mlp" / name) << "x";
  EXPECT_EQ(result_files(folder.path(), c),
            (std::vector<fs::path>{result_path(folder.path(), c, 2), result_path(folder.path(), c, 10)}));
  EXPECT_EQ(result_path("out", c, 2), fs::path("out/1f1b/mlp/rank2.safetensors"));
}

}  // namespace
}  // namespace plumbline::conformance

#include "conformance/launch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "runtime/error.h"
#include "runtime/temporary_folder.h"

namespace plumbline {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string text(const LaunchEvent& event) {
  return (event.throughput ? "throughput " : "case ") + std::to_string(event.index) +
         (event.done ? " done" : " begins");
}

/// Shell scripts stand in for programs.
class LauncherTest : public testing::Test {
 protected:
  std::string script(const std::string& name, const std::string& body) {
    const fs::path path = folder / name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  LaunchResult run(const std::string& body, std::chrono::duration<double> silence = 1h) {
    return Launcher(script("program", body), false, 2).run(job, out, silence, [&](const LaunchEvent& event) {
      events.push_back(text(event));
    });
  }

  const TemporaryFolder folder;
  fs::path out = folder / "results of \"this\" run";
  Job job;
  std::vector<std::string> events;
};

TEST(LaunchEvents, AreReadBack) {
  for (const std::string line : {"case 0 begins", "case 3 done", "throughput 12 begins", "throughput 7 done"})
    EXPECT_EQ(text(parse_event(line)), line);
  EXPECT_EQ(text(parse_event("case 18446744073709551615 done")), "case 18446744073709551615 done");
}

TEST(LaunchEvents, AnythingElseIsRefusedWhole) {
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
                                 "case 3 begins done",
                                 "case 18446744073709551616 done",
                                 "Case 3 done",
                                 "throughput case 3 done",
                                 "throughput3 done",
                                 "step 3 done",
                                 "case 3 done\ncase 4 done"}) {
    try {
      parse_event(line);
      ADD_FAILURE() << "accepted: " << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "unknown event '" + line + "'");
    }
  }
}

TEST_F(LauncherTest, EventsArriveInOrderAndAreKeptOutOfTheOutput) {
  const LaunchResult result = run(R"(
printf 'no'; printf 'ise\n\n@plumb' >&2; printf 'line case 1'; printf ' beg'; printf 'ins\nnoise @plumbline case 9 done\n'
printf '@plumbline case 1 done\n@plumbline throughput 0 begins\nbetween\n@plumbline throughput 0 done\n@plumbline'
printf 's are fruit\nlast')");
  EXPECT_EQ(events,
            (std::vector<std::string>{"case 1 begins", "case 1 done", "throughput 0 begins", "throughput 0 done"}));
  EXPECT_EQ(result.output, "noise\n\nnoise @plumbline case 9 done\nbetween\n@plumblines are fruit\nlast");
  EXPECT_TRUE(result.succeeded);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.ending, "exited with code 0");
}

TEST_F(LauncherTest, ManyEventsInPiecesOfAnySize) {
  const LaunchResult result = run(R"(
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

TEST_F(LauncherTest, AnEventWithoutItsEndOfLineIsNone) {
  const LaunchResult result = run("printf 'why\\n@plumbline case 7 done'; exit 1");
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(result.output, "why\n");
}

TEST_F(LauncherTest, EndingsAreTold) {
  const LaunchResult failed = run("echo reason >&2; exit 3");
  EXPECT_FALSE(failed.succeeded || failed.timed_out);
  EXPECT_EQ(failed.ending, "exited with code 3");
  EXPECT_EQ(failed.output, "reason\n");
  const LaunchResult killed = run("echo '@plumbline case 0 begins'; kill -SEGV $$");
  EXPECT_FALSE(killed.succeeded || killed.timed_out);
  EXPECT_EQ(killed.ending, "killed by signal 11 (Segmentation fault)");
  EXPECT_EQ(events.size(), 1u) << "the events before the end count";
  const LaunchResult missing =
      Launcher((folder / "none").string(), false, 1).run(job, out, 1h, [](const LaunchEvent&) {});
  EXPECT_FALSE(missing.succeeded || missing.timed_out);
  EXPECT_EQ(missing.ending, "cannot start " + (folder / "none").string() + ": No such file or directory");
}

TEST_F(LauncherTest, SilenceEndsIt) {
  const LaunchResult result = run("echo '@plumbline case 4 begins'; echo here; exec sleep 1000", 2s);
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.succeeded);
  EXPECT_EQ(result.ending, "no output for 2 s");
  EXPECT_EQ(result.output, "here\n");
  EXPECT_EQ(events, std::vector<std::string>{"case 4 begins"});
}

TEST_F(LauncherTest, AnUnknownEventEndsTheProgram) {
  const fs::path pid_file = folder / "pid";
  EXPECT_THROW(run("echo $$ > '" + pid_file.string() + "'; echo '@plumbline case x'; exec sleep 1000"), Error);
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_EQ(kill(pid, 0), -1) << "still there";
}

TEST_F(LauncherTest, TheProgramIsGivenTheJob) {
  job.ranks = 3;
  job.seed = 18446744073709551615u;
  job.timeout_seconds = 2.5;
  job.mutant = "a \"mutant\"";
  job.recompute = "except-last";
  job.remat = "bytes", job.remat_policy = "seed";
  job.cases = {{"mlp", "gpipe"}, {"tied", "1f1b"}};
  job.throughput = {{"gpipe", "", 5, 10, 0, 8, 3}};
  const LaunchResult result = run("for word in \"$@\"; do echo \"$word\"; done; echo $OMP_NUM_THREADS");
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
  ASSERT_EQ(read.throughput.size(), 1u);
  EXPECT_EQ(read.throughput[0].backward_ms, 10);
}

TEST_F(LauncherTest, WithMpiTheLauncherOfRanksIsInFront) {
  script("mpirun", "printf '%s ' \"$@\"");
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  out = folder / "out";
  const LaunchResult result = Launcher("/some/program", true, 5).run(job, out, 1h, [](const LaunchEvent&) {});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(result.output, "-n 5 /some/program backend run --job " + (out / "job.json").string() + " --out " +
                               out.string() + " --transport mpi ");
}

}  // namespace
}  // namespace plumbline

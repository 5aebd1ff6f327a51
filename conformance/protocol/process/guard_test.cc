// What a program leaves behind: processes in other groups and sessions, without its environment, without a supervisor.
#include "conformance/protocol/process/guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/io/temporary_folder.h"
#include "runtime/testing/processes.h"

extern char** environ;

namespace plumbline::conformance {
namespace {

/// A shell under a guard, in a folder of its own. `pids` there has the ids of what it leaves.
class Guarded : public ::testing::Test {
 protected:
  GuardedProgram shell(const std::string& script) {
    words_ = {"sh", "-c", script};
    argv_.clear();
    for (std::string& word : words_) argv_.push_back(word.data());
    argv_.push_back(nullptr);
    return {argv_.data(), environ, folder_.path().c_str(), null_, null_};
  }
  /// A process that starts the program under a guard and waits for it.
  static pid_t supervisor_of(const GuardedProgram& program) {
    const pid_t supervisor = fork();
    if (supervisor < 0) throw std::runtime_error("fork");  // kill(-1) would end every process
    if (supervisor == 0) {
      Guard guard(program);
      guard.wait();
      _exit(0);
    }
    return supervisor;
  }
  /// Waits until `count` ids are there.
  std::vector<pid_t> pids(size_t count) const {
    std::vector<pid_t> found;
    for (int tries = 0; tries < 3000 && found.size() < count; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::ifstream file(folder_ / "pids");
      found.clear();
      for (std::string line; std::getline(file, line) && !file.eof();) found.push_back(std::stoi(line));
    }
    EXPECT_EQ(found.size(), count);
    return found;
  }

  const TemporaryFolder folder_;
  const int null_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::vector<std::string> words_;
  std::vector<char*> argv_;
};

TEST_F(Guarded, AProgramEndsAsItDoesWithoutAGuard) {
  Guard good(shell("exit 3"));
  EXPECT_EQ(good.could_not_start(), 0);
  EXPECT_TRUE(good.wait().exited);
  EXPECT_EQ(good.wait().status, 3);
  Guard bad(shell("kill -SEGV $$"));
  EXPECT_FALSE(bad.wait().exited);
  EXPECT_EQ(bad.wait().status, SIGSEGV);
}

TEST_F(Guarded, AProgramThatIsNotThereHasItsReason) {
  GuardedProgram program = shell("");
  argv_[0] = const_cast<char*>("/no/such/program");
  EXPECT_EQ(Guard(program).could_not_start(), ENOENT);
  program = shell("");
  program.directory = "/no/such/folder";
  EXPECT_EQ(Guard(program).could_not_start(), ENOENT);
}

TEST_F(Guarded, WhatEscapesFromGroupSessionAndEnvironmentIsEnded) {
  Guard guard(
      shell("env -i setsid sh -c 'trap \"\" TERM; sleep 1000 & echo $! >> pids; echo $$ >> pids; wait' &\n"
            "sh -c 'sleep 1001 & echo $! >> pids'\n"
            "while test $(wc -l < pids) -lt 3; do sleep 0.01; done"));
  EXPECT_TRUE(guard.wait().exited);
  const std::vector<pid_t> left = pids(3);
  for (const pid_t pid : left) EXPECT_TRUE(testing::is_alive(pid)) << pid;
  guard.end_all();
  for (const pid_t pid : left) EXPECT_TRUE(testing::ends(pid)) << pid;
}

TEST_F(Guarded, AKilledSupervisorLeavesNothing) {
  const GuardedProgram program = shell(
      "trap '' TERM; env -i setsid sleep 1000 & echo $! >> pids; sleep 1001 & echo $! >> pids; echo $$ >> pids; wait; "
      "wait");
  const pid_t supervisor = supervisor_of(program);
  const std::vector<pid_t> left = pids(3);
  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);
  for (const pid_t pid : left) EXPECT_TRUE(testing::ends(pid)) << pid;
}

TEST_F(Guarded, AKilledSupervisorsProgramIsAskedFirst) {
  const GuardedProgram program =
      shell("trap 'echo asked > asked; exit' TERM; echo $$ >> pids; while :; do sleep 0.01; done");
  const pid_t supervisor = supervisor_of(program);
  const std::vector<pid_t> left = pids(1);
  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);
  EXPECT_TRUE(testing::ends(left.at(0)));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "asked"))
      << "mpirun removes its files, and ends its ranks, when it is asked";
}

TEST_F(Guarded, AProgramThatKillsItsGuardIsKilled) {
  Guard guard(shell("sleep 1000 & echo $! >> pids; echo $$ >> pids; kill -9 $PPID; wait"));
  EXPECT_FALSE(guard.wait().exited);
  EXPECT_EQ(guard.wait().status, SIGKILL);
  guard.end_all();
  for (const pid_t pid : pids(2)) EXPECT_TRUE(testing::ends(pid)) << pid;
}

TEST_F(Guarded, WhatAProgramLeavesThatKillsItsGuardIsEnded) {
  // In a supervisor of its own: it becomes the parent of all orphans, and this process must not.
  const GuardedProgram program = shell(
      ": > pids; env -i setsid sh -c 'sleep 1000 & echo $! >> pids; echo $$ >> pids; wait' &\n"
      "while test $(wc -l < pids) -lt 2; do sleep 0.01; done; kill -9 $PPID; wait");
  const GuardedProgram other = {program.argv, program.environment, "/no/such/folder", null_, null_};
  const pid_t supervisor = fork();
  ASSERT_GE(supervisor, 0);
  if (supervisor == 0) {
    const pid_t own = fork();  // no orphan
    if (own == 0) pause();
    {
      Guard guard(program);
      guard.wait();
    }
    const bool is_left = testing::is_alive(own);
    kill(own, SIGKILL);
    _exit(is_left && Guard(other).could_not_start() == ENOENT ? 0 : 1);
  }
  const std::vector<pid_t> left = pids(2);
  int status = -1;
  waitpid(supervisor, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (const pid_t pid : left) EXPECT_TRUE(testing::ends(pid)) << pid;
  for (const pid_t pid : left) kill(pid, SIGKILL);
}

TEST_F(Guarded, AProgramWhoseSupervisorAndGuardAreKilledIsKilled) {
  const GuardedProgram program = shell("echo $PPID >> pids; echo $$ >> pids; exec sleep 1000");
  const pid_t supervisor = supervisor_of(program);
  const std::vector<pid_t> left = pids(2);
  kill(left.at(0), SIGKILL);
  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);
  EXPECT_TRUE(testing::ends(left.at(1)));
}

TEST_F(Guarded, AProgramThatStopsItsGuardIsEnded) {
  for (const char* stop : {"kill -STOP $PPID; wait", "while :; do kill -STOP $PPID; done"}) {
    std::filesystem::remove(folder_ / "pids");
    const GuardedProgram program =
        shell(std::string("setsid sleep 1000 & echo $! >> pids; echo $PPID >> pids; echo $$ >> pids; ") + stop);
    const pid_t supervisor = fork();
    ASSERT_GE(supervisor, 0);
    if (supervisor == 0) {
      Guard guard(program);
      pids(3);
      guard.end_all();
      _exit(0);
    }
    const std::vector<pid_t> left = pids(3);
    EXPECT_TRUE(testing::ends(supervisor)) << "end_all() waits without a limit for a guard after: " << stop;
    kill(supervisor, SIGKILL);
    waitpid(supervisor, nullptr, 0);
    for (const pid_t pid : left) EXPECT_TRUE(testing::ends(pid)) << pid;
    for (const pid_t pid : left) kill(pid, SIGKILL);
  }
}

TEST_F(Guarded, ASupervisorsDeathWakesAStoppedGuard) {
  const GuardedProgram program =
      shell("trap '' TERM; echo $$ >> pids; kill -STOP $PPID; echo $PPID >> pids; while :; do sleep 1000; done");
  const pid_t supervisor = supervisor_of(program);
  const std::vector<pid_t> left = pids(2);
  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);
  for (const pid_t pid : left) EXPECT_TRUE(testing::ends(pid)) << pid;
  for (const pid_t pid : left) kill(pid, SIGKILL);
}

TEST_F(Guarded, TheGuardHoldsNoDescriptorOfTheSupervisor) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  Guard guard(shell("exec sleep 1000"));
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "the end of the file comes while the program runs";
  close(ends[0]);
}

}  // namespace
}  // namespace plumbline::conformance

#include "conformance/protocol/process/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::conformance {
namespace {

using namespace std::chrono_literals;

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  return options;
}

/// Whether a process is gone, or a zombie that its new parent has yet to reap.
bool is_dead(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  return line.substr(line.rfind(')') + 2, 1) == "Z";
}

/// Returns when `pid` has died; fails after a time that no working kernel needs.
bool dies(pid_t pid) {
  for (int i = 0; i < 3000 && !is_dead(pid); ++i) std::this_thread::sleep_for(10ms);
  return is_dead(pid);
}

TEST(Process, ExitCodeAndOutputInOrder) {
  const ProcessResult result = run_process(shell("echo out; echo err >&2; printf more; exit 3"));
  EXPECT_EQ(result.output, "out\nerr\nmore");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(result.succeeded());
  EXPECT_EQ(describe(result), "exited with code 3");
  EXPECT_TRUE(run_process(shell("exit 0")).succeeded());
}

TEST(Process, TimeSpentInTheCallbackIsNotTheChildsSilence) {
  ProcessOptions options = shell("echo one; sleep 0.2; echo two");
  options.silence_timeout = 5000ms;
  options.on_output = [first = true](std::string_view, const auto&) mutable {
    if (std::exchange(first, false)) std::this_thread::sleep_for(6000ms);
  };
  const ProcessResult result = run_process(options);
  EXPECT_FALSE(result.timed_out) << result.timeout_reason;
  EXPECT_EQ(result.output, "one\ntwo\n");
}

TEST(Process, ArgumentsAreNotInterpreted) {
  ProcessOptions options;
  options.argv = {"printf", "%s|%s|", "$HOME `ls` \"'", ""};
  EXPECT_EQ(run_process(options).output, "$HOME `ls` \"'||");
}

TEST(Process, EnvironmentDirectoryAndStandardInput) {
  setenv("PLUMBLINE_TEST_KEPT", "kept", 1);
  setenv("PLUMBLINE_TEST_CHANGED", "old", 1);
  ProcessOptions options = shell("echo $PLUMBLINE_TEST_KEPT $PLUMBLINE_TEST_CHANGED $PLUMBLINE_TEST_NEW; pwd; cat");
  options.environment = {{"PLUMBLINE_TEST_CHANGED", "new"}, {"PLUMBLINE_TEST_NEW", "a b"}};
  options.directory = "/usr";
  EXPECT_EQ(run_process(options).output, "kept new a b\n/usr\n");
}

TEST(Process, WhatIsIgnoredHereIsNotIgnoredByTheChild) {
  std::signal(SIGXFSZ, SIG_IGN);
  const ProcessResult result = run_process(shell("kill -XFSZ $$"));
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(result.signal, SIGXFSZ);
}

TEST(Process, SignalsAreNamed) {
  const ProcessResult result = run_process(shell("kill -SEGV $$"));
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_FALSE(result.exit_code.has_value());
  EXPECT_EQ(describe(result), "killed by signal 11 (Segmentation fault)");
}

TEST(Process, AProgramThatCannotStartHasAReason) {
  ProcessOptions options;
  options.argv = {"/no/such/program"};
  const ProcessResult result = run_process(options);
  EXPECT_EQ(result.could_not_start, "cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(describe(result), result.could_not_start);
  EXPECT_FALSE(result.succeeded());
  options.argv = {"true"};
  options.directory = "/no/such/folder";
  EXPECT_NE(run_process(options).could_not_start, "");
  options.argv.clear();
  EXPECT_THROW(run_process(options), InputError);
}

TEST(Process, ADeadlineEndsTheChild) {
  ProcessOptions options = shell("echo begun; exec sleep 1000");
  options.timeout = 200ms;
  const ProcessResult result = run_process(options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_EQ(describe(result), "no end within 0.2 s");
}

TEST(Process, ADeadlineEndsAGroupThatIgnoresSigterm) {
  ProcessOptions options = shell("trap '' TERM; sleep 1000 & echo $!; wait; while :; do sleep 1000; done");
  options.timeout = 1500ms;  // time enough to set the trap
  options.grace = 100ms;
  const ProcessResult result = run_process(options);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  ASSERT_NE(result.output, "");
  EXPECT_TRUE(dies(std::stoi(result.output)));
}

TEST(Process, SilenceEndsTheChild) {
  ProcessOptions options = shell("echo begun; exec sleep 1000");
  options.timeout = 1h;
  options.silence_timeout = 200ms;
  EXPECT_EQ(describe(run_process(options)), "no output for 0.2 s");
}

TEST(Process, DescendantsInOtherGroupsAreKilled) {
  const ProcessResult result =
      run_process(shell("sleep 1000 & echo $!; echo $(setsid sh -c 'sleep 1000 > /dev/null 2>&1 & echo $!'); exit 0"));
  EXPECT_EQ(result.exit_code, 0);
  std::istringstream pids(result.output);
  pid_t in_group = 0;
  pid_t elsewhere = 0;
  ASSERT_TRUE(pids >> in_group >> elsewhere) << result.output;
  EXPECT_TRUE(dies(in_group));
  EXPECT_TRUE(dies(elsewhere));
}

TEST(Process, OutputKeepsItsHeadAndTail) {
  ProcessOptions options = shell("printf HEAD; head -c 3000000 /dev/zero | tr '\\0' x; printf TAIL");
  options.output_limit = 1000;
  size_t seen = 0;
  options.on_output = [&](std::string_view piece, const auto&) { seen += piece.size(); };
  const std::string output = run_process(options).output;
  EXPECT_EQ(seen, 3000008u);
  EXPECT_EQ(output,
            "HEAD" + std::string(496, 'x') + "\n[... 2999008 bytes left out ...]\n" + std::string(496, 'x') + "TAIL");
}

TEST(Process, AFloodOfErrorsDoesNotKeepTheListener) {
  ProcessOptions options = shell("yes why >&2 & sleep 0.5; echo event; wait");
  options.timeout = 2s;
  options.separate_errors = true;
  options.errors_limit = 1000;
  size_t heard = 0;
  options.on_output = [&](std::string_view, const std::function<void()>& hear_errors) {
    hear_errors();
    ++heard;
  };
  const ProcessResult result = run_process(options);
  EXPECT_EQ(heard, 1u);
  EXPECT_EQ(describe(result), "no end within 2 s");
  EXPECT_EQ(result.output, "event\n");
  EXPECT_TRUE(result.errors.starts_with("why\n"));
  EXPECT_LT(result.errors.size(), 1100u);
}

TEST(Process, ClosingItsOutputIsNotTheEnd) {
  const ProcessResult result = run_process(shell("exec >&- 2>&-; sleep 0.2; exit 7"));
  EXPECT_EQ(result.exit_code, 7);
}

TEST(Process, WaitingDoesNotSpin) {
  ProcessOptions options = shell("exec >&- 2>&-; sleep 0.5");  // an output at its end must not wake the waiter either
  options.timeout = 1h;
  const std::clock_t before = std::clock();
  const ProcessResult result = run_process(options);
  const double computing = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(computing, 0.25 * result.seconds);  // spinning takes all of it
}

TEST(Process, AnExceptionOfTheListenerKillsTheChild) {
  pid_t pid = 0;
  ProcessOptions options = shell("echo $$; exec sleep 1000");
  options.on_output = [&](std::string_view piece, const auto&) {
    pid = std::stoi(std::string(piece));
    throw Error("enough");
  };
  EXPECT_THROW(run_process(options), Error);
  EXPECT_TRUE(dies(pid));
}

struct Signalled {
  std::string said;  ///< by the child, at first
  int status = 0;    ///< of its supervisor
};

/// A supervisor that gets a signal when its child has said something.
Signalled signalled(ProcessOptions child, int signal) {
  int ends[2];
  if (pipe(ends) != 0) throw Error("no pipe");
  const pid_t supervisor = fork();
  if (supervisor < 0) throw Error("no process");
  if (supervisor == 0) {
    end_children_on_signals();
    child.on_output = [&](std::string_view piece, const auto&) {
      if (write(ends[1], piece.data(), piece.size()) < 0) _exit(1);
    };
    run_process(child);
    _exit(0);
  }
  char text[32] = {};
  const bool spoke = read(ends[0], text, sizeof text - 1) > 0;
  kill(supervisor, signal);
  Signalled ended{text};
  waitpid(supervisor, &ended.status, 0);
  close(ends[0]);
  close(ends[1]);
  if (!spoke) throw Error("the child said nothing");
  return ended;
}

TEST(Process, SignalsReachTheChildren) {
  const Signalled ended = signalled(shell("echo $$; exec sleep 1000"), SIGINT);
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGINT);
  EXPECT_TRUE(dies(std::stoi(ended.said)));
}

/// Notes each SIGTERM in the file log of its folder, goes on for a second after the first, and notes its end.
ProcessOptions cleaning_child(const TemporaryFolder& folder, const std::string& when_ready,
                              const std::string& when_asked) {
  ProcessOptions child = shell("trap '" + when_asked + "echo asked >> log' TERM; " + when_ready +
                               "until test -s log; do sleep 0.01; done\n"
                               "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; echo cleaned >> log");
  child.directory = folder.path().string();
  return child;
}

TEST(Process, ASignalAsksTheChildOnceAndGivesItTime) {
  const TemporaryFolder folder;
  const Signalled ended = signalled(cleaning_child(folder, "echo ready; ", ""), SIGTERM);
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGTERM);
  EXPECT_EQ(read_file(folder / "log"), "asked\ncleaned\n") << "mpirun leaves its files after a second SIGTERM";
}

TEST(Process, ASignalAfterADeadlineDoesNotAskTheChildAgain) {
  const TemporaryFolder folder;
  ProcessOptions child = cleaning_child(folder, "", "echo asked; ");
  child.timeout = 1500ms;  // time enough to set the trap
  child.grace = 1h;
  child.separate_errors = true;  // the shell tells that its sleep was asked, too
  const Signalled ended = signalled(child, SIGTERM);
  EXPECT_EQ(ended.said, "asked\n");
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGTERM);
  EXPECT_EQ(read_file(folder / "log"), "asked\ncleaned\n");
}

TEST(Process, AShellReadsAQuotedWordAsOneArgument) {
  for (const std::string word :
       {"", "plain", "a/b-1.csv", "two words", "it's", "$HOME", "*", "a\nb", "\"", "\\", "~"}) {
    const ProcessResult result = run_process(shell("printf '<%s>' " + shell_word(word)));
    EXPECT_EQ(result.output, "<" + word + ">");
  }
  EXPECT_EQ(shell_word("mine/zb-h1.csv"), "mine/zb-h1.csv") << "no quotes where none are needed";
}

}  // namespace
}  // namespace plumbline::conformance

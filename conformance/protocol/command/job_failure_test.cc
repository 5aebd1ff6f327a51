#include "conformance/protocol/command/job_failure.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

namespace plumbline::conformance {
namespace {

TEST(ReasonOf, ARanksReasonPrecedesItsLaunchers) {
  const auto reason = [](const std::string& errors, const std::string& output = "") {
    return reason_of({.ending = "exited with code 1", .output = output, .errors = errors});
  };
  EXPECT_EQ(reason(""), "exited with code 1");
  EXPECT_EQ(reason("a\nlast words\n\n"), "last words (exited with code 1)");
  EXPECT_EQ(reason("x\nplumbline: rank 1: why\nmpirun says\n", "y"), "plumbline: rank 1: why");
  EXPECT_EQ(reason("mpirun says\n", "plumbline: why\n"), "plumbline: why");
  EXPECT_EQ(reason("Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no\n"
                   "----\nmpirun noticed: exited on signal 9\n"),
            "ValueError: no (exited with code 1)");
  EXPECT_EQ(reason("[rank3]: torch.cuda.OutOfMemoryError: out\nmore\n"),
            "[rank3]: torch.cuda.OutOfMemoryError: out (exited with code 1)");
  const std::string torchrun =
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\nsh FAILED\n----\nFailures:\n[1]:\n"
      "  rank      : 0 (local_rank: 0)\n  exitcode  : -15 (pid: 36)  (SIGTERM)\n----\nRoot Cause (first observed "
      "failure):\n[0]:\n  time      : 2026-11-22_09:12:37\n  rank      : 3 (local_rank: 1)\n"
      "  exitcode  : -11 (pid: 37) (SIGSEGV)\n  error_file: <N/A>\n====\n";
  EXPECT_EQ(reason("E1122 api.py:1002] failed\n" + torchrun),
            "rank 3 failed first: exitcode -11 (pid: 37) (SIGSEGV) (exited with code 1)");
  EXPECT_EQ(reason("[rank3]: ValueError: no\n" + torchrun), "[rank3]: ValueError: no (exited with code 1)");
  EXPECT_EQ(reason("----\nrank 0 exited on signal 11 (Segmentation fault).\n----\n"),
            "rank 0 exited on signal 11 (Segmentation fault). (exited with code 1)");
}

TEST(ReasonOf, MpichsSignalIsOnStandardOutput) {
  const std::string banner =
      "=====\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 9\n=====\nYOUR APPLICATION "
      "TERMINATED WITH THE EXIT STRING: Killed (signal 9)\nThis typically refers to a problem with your application.\n";
  const std::string said = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9) (code 9)";
  EXPECT_EQ(reason_of({.ending = "code 9", .output = banner}), said);
  EXPECT_EQ(reason_of({.ending = "code 9", .output = banner, .errors = "last words\n"}), said);
  EXPECT_EQ(reason_of({.ending = "code 9", .output = banner, .errors = "ValueError: no\n"}), "ValueError: no (code 9)");
}

TEST(ReasonOf, ARanksLastWordsPrecedeThoseOfSlurm) {
  const auto reason = [](const std::string& errors) { return reason_of({.ending = "code 143", .errors = errors}); };
  const std::string slurms =
      "srun: error: n2: task 3: Killed\nsrun: Terminating StepId=20.0\nslurmstepd: error: *** STEP 20.0 ON n1 "
      "CANCELLED "
      "***\nsrun: error: n1: tasks 0-2: Exited with exit code 143\nsrun: Force Terminated StepId=20.0\n";
  EXPECT_EQ(reason("no room left\n" + slurms), "no room left (code 143)");
  EXPECT_EQ(reason(slurms), "srun: error: n2: task 3: Killed (code 143)");
  EXPECT_EQ(reason(slurms + "[n1][[9,0],0][../btl_tcp.c:559:mca_btl_tcp_recv_blocking] recv(19) failed: reset\n"),
            "srun: error: n2: task 3: Killed (code 143)");
  EXPECT_EQ(reason("srun: job 7 queued\nsrun: Expired or invalid job 7\n"),
            "srun: Expired or invalid job 7 (code 143)");
}

TEST(ReasonOf, AFullTemporaryFolderIsNamed) {
  const char* before = std::getenv("TMPDIR");
  const std::string restored = before == nullptr ? "" : before;
  setenv("TMPDIR", "/proc", 1);  // has no room
  const std::string lack = lack_of_ranks();
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", restored.c_str(), 1);
  EXPECT_EQ(
      lack,
      "the temporary folder /proc has 0 MB free, MPI and cases need 64; free some, or set TMPDIR to another folder");
  EXPECT_EQ(reason_of({.timed_out = true, .ending = "no event within 180 s", .lack = lack}),
            "no event within 180 s; " + lack);
  EXPECT_EQ(reason_of({.ending = "code 1", .errors = "words\n", .lack = lack}), "words (code 1); " + lack);
  EXPECT_EQ(lack_of_ranks(), "");
}

TEST(ReasonOf, ALowLimitOfOpenFilesIsNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {200, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  const std::string lack = lack_of_ranks();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(lack, "a process may open 200 files, MPI and cases need 256; raise the limit: ulimit -n 256");
  EXPECT_EQ(lack_of_ranks(), "");
}

TEST(ReasonOf, OfANoticeOfMpirunTheFirstSentenceCounts) {
  const auto reason = [](const std::string& errors) { return reason_of({.ending = "code 1", .errors = errors}); };
  const std::string dashes(74, '-'), frame = dashes + "\n";
  const std::string as_root = frame +
                              "mpirun has detected an attempt to run as root.\n\nRunning as root is *strongly* "
                              "discouraged (e.g., in\ndefining TMPDIR).\n\nWe reiterate our advice.\n" +
                              frame;
  const std::string ended = frame +
                            "Primary job  terminated normally, but 1 process returned\na non-zero exit code. "
                            "Per user-direction, the job has been aborted.\n" +
                            frame;
  const std::string killed = "mpirun noticed that process rank 1 with PID 7 on node vm exited on signal 9 (Killed).";
  EXPECT_EQ(reason(as_root), "mpirun has detected an attempt to run as root. (code 1)");
  EXPECT_EQ(reason(ended), "Primary job terminated normally, but 1 process returned a non-zero exit code. (code 1)");
  EXPECT_EQ(reason("python3: can't open file 'a.py'\n" + ended), "python3: can't open file 'a.py' (code 1)");
  const std::string fatal =
      "*** An error occurred in MPI_Init_thread\n*** on a NULL communicator\n*** MPI_ERRORS_ARE_FATAL (processes in "
      "this communicator will now abort,\n***    and potentially your MPI job)\n";
  EXPECT_EQ(reason(ended + fatal +
                   "[vm:1] Local abort before MPI_INIT completed completed successfully, but\n[vm:1] 1 more "
                   "process has sent help message help-orte.txt / x\n[vm:1] Set MCA parameter "
                   "\"orte_base_help_aggregate\" to 0 to see all help / error messages\n"),
            "Primary job terminated normally, but 1 process returned a non-zero exit code. (code 1)");
  EXPECT_EQ(reason("a warning\n" + ended + frame + killed + "\n" + frame), killed + " (code 1)");
  EXPECT_EQ(reason(frame + "RuntimeError: in a box\n" + frame + "last\n"), "RuntimeError: in a box (code 1)");
  EXPECT_EQ(reason("name value\n" + frame + "a 1\nfatal\n"), "fatal (code 1)") << "a single line of dashes";
}

}  // namespace
}  // namespace plumbline::conformance

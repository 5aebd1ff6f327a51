// A guard: the process between the supervisor and a program that it starts, which leaves nothing of it behind.
//
// The guard is the parent of the program, and of every process that the program leaves without a parent, in whatever
// group or session and with whatever environment (PR_SET_CHILD_SUBREAPER). It ends them all when the supervisor says
// so, and also when the supervisor itself is killed: then a pipe from it closes. If the guard is killed, the kernel
// kills the program (PR_SET_PDEATHSIG), and the supervisor, which is then the parent of what the program left, kills
// that. A guard that the program stops (SIGSTOP) goes on when the supervisor ends the program or dies. What it cannot
// end: processes of another user, on other hosts, or of a daemon that was running before; nor anything if the program
// kills its guard and the supervisor, or stops its guard after the supervisor's death.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace plumbline::conformance {

struct GuardedProgram {
  char* const* argv;         ///< argv[0] is looked up in PATH unless it contains a slash
  char* const* environment;  ///< all of it
  const char* directory;     ///< working directory; empty: that of this process
  int output, errors;        ///< descriptors for its standard output and standard error; its input is /dev/null
};

class Guard {
 public:
  /// How long the program and its processes may take to end by themselves once the supervisor is gone.
  /// mpirun needs more than a second.
  static constexpr std::chrono::milliseconds kGrace{4000};
  /// How long it may take the kernel to end killed processes; those in an uninterruptible sleep are then left.
  static constexpr std::chrono::milliseconds kLongestEnd{10000};

  /// Starts the program, which leads a new process group in a new session. Throws Error if there is no process or pipe
  /// left, or if there are 64 guards.
  explicit Guard(const GuardedProgram& program);
  ~Guard();  ///< end_all()
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Why the program did not start, an errno; 0: it did.
  int could_not_start() const { return error_; }
  /// The program, and its process group. Its id is not given to another process before end_all().
  pid_t pid() const { return pid_; }
  /// A descriptor that becomes readable when the program ends.
  int end_descriptor() const { return reports_; }

  struct Ending {
    bool exited = false;  ///< else a signal ended it
    int status = 0;       ///< the exit code or the signal
  };
  /// Blocks until the program ends.
  Ending wait();

  /// Asks the program and its process group to end (SIGTERM), and returns at once. They are asked once, by the first
  /// call or by leave_all(): mpirun takes a second SIGTERM as an order to leave its files.
  void ask_to_end();

  /// Kills the program and all that it left, and returns when they are gone, or after kGrace + kLongestEnd.
  void end_all();

  /// Leaves all guards of this process to themselves, as its death does, and returns when they have asked their
  /// programs to end and have ended, or after kGrace + kLongestEnd. For a signal handler that then ends this process.
  static void leave_all();

 private:
  static constexpr int kPatience = 20;  ///< ms without a sign of the guard before it is told to go on
  /// Waits for data from the guard (POLLIN) or for its end (0) for a short time; false: there was none, and the guard
  /// goes on if it was stopped.
  bool guard_shows(short event) const;
  void tell(char command);

  pid_t guard_ = -1, pid_ = -1;
  std::vector<pid_t> children_before_;  ///< of this process: no orphans of the program
  int error_ = 0;
  int reports_ = -1, control_ = -1;
  bool has_ended_ = false;
  Ending ending_;
};

}  // namespace plumbline::conformance

#include "conformance/protocol/process/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>

#include "conformance/protocol/process/after_fork.h"
#include "conformance/protocol/process/orphans.h"
#include "conformance/protocol/process/scratch_folder.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

/// What the guard reports: the program's id, that it runs or why it does not, how it ended. Smaller than PIPE_BUF, so
/// that it arrives whole.
struct GuardReport {
  enum Kind { Forked, Started, NotStarted, Exited, Signalled } kind;
  int value;
};

/// What the supervisor tells its guard; kLeft is not sent, but stands for the end of the pipe.
constexpr char kAskToEnd = 't', kEndAll = 'k', kLeft = 'l';

/// The guards of this process, for a signal handler: lock-free. 0: a free place.
struct LiveGuard {
  std::atomic<pid_t> guard{0};
  std::atomic<int> control{-1};
};
std::array<LiveGuard, 64> live_guards;
static_assert(std::atomic<pid_t>::is_always_lock_free);

/// From the fork of a guard until it is among live_guards: until then it looks like an orphan.
std::mutex forking;

/// False: there is no free place.
bool remember(pid_t guard, int control) {
  for (LiveGuard& place : live_guards) {
    pid_t free = 0;
    if (!place.guard.compare_exchange_strong(free, guard)) continue;
    place.control = control;
    return true;
  }
  return false;
}

LiveGuard* place_of(pid_t guard) {
  for (LiveGuard& place : live_guards)
    if (place.guard == guard) return &place;
  return nullptr;
}

// --- after the fork: only functions that a signal handler may call -------------------------------------------------

void report_to(int reports, const GuardReport& what) {
  if (write(reports, &what, sizeof(what)) < 0) return;  // the supervisor has ended
}

[[noreturn]] void become_program(const GuardedProgram& program, pid_t guard, int failures) {
  reset_signals();
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(127);  // it died before
  const int nothing = open("/dev/null", O_RDONLY);
  const bool ready = nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(program.output, STDOUT_FILENO) >= 0 &&
                     dup2(program.errors, STDERR_FILENO) >= 0 &&
                     (program.directory[0] == '\0' || chdir(program.directory) == 0);
  if (nothing > STDERR_FILENO) close(nothing);
  if (ready) execvpe(program.argv[0], program.argv, program.environment);
  const int error = errno;
  if (write(failures, &error, sizeof(error)) < 0) _exit(126);
  _exit(127);
}

/// Starts the program; its id, or a negative errno. The id is reported before the program can do anything, such as kill
/// its guard.
pid_t start_program(const GuardedProgram& program, int reports) {
  int ends[2], go[2];
  if (pipe2(ends, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0) return -errno;
  const pid_t guard = getpid(), pid = fork_alone();
  if (pid < 0) return -errno;
  if (pid == 0) {
    char byte;
    close(go[1]);
    read_fully(go[0], &byte, 1);
    become_program(program, guard, ends[1]);
  }
  setpgid(pid, pid);  // the program calls it too; the first call counts
  report_to(reports, {GuardReport::Forked, pid});
  close(go[0]), close(go[1]), close(ends[1]);
  int error = 0;
  const bool failed = read_fully(ends[0], &error, sizeof(error)) > 0;
  close(ends[0]);
  if (!failed) return pid;
  waitpid(pid, nullptr, 0);
  return -error;
}

/// Kills the direct children, among them all orphans.
void kill_children() {
  const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 4096> text;
  pid_t pid = 0;
  for (ssize_t count; (count = read(file, text.data(), text.size())) > 0;)
    for (ssize_t i = 0; i < count; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = 10 * pid + (text[i] - '0');
      } else if (pid > 0) {
        kill(pid, SIGKILL);
        pid = 0;
      }
    }
  close(file);
}

class GuardProcess {
 public:
  GuardProcess(pid_t program, int control, int reports) : program_(program), control_(control), reports_(reports) {
    block_signals();  // SIGPIPE too: the guard outlives the reader of its reports
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    signals_ = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    close_others({control, reports, signals_, ScratchFolder::lifeline()});
  }

  [[noreturn]] void run() {
    report({GuardReport::Started, program_});
    char command = 0;
    for (pollfd events[] = {{control_, POLLIN, 0}, {signals_, POLLIN, 0}};;) {
      reap();  // before the first wait too: the program may have ended before the signal was blocked
      if (poll(events, 2, -1) < 0) continue;
      if (events[0].revents == 0) continue;
      if (read_fully(control_, &command, 1) < 1) command = kLeft;
      if (command != kEndAll) ask_to_end();
      if (command == kAskToEnd) continue;
      if (command == kLeft) await_end();
      kill_all();
      _exit(0);
    }
  }

 private:
  void report(const GuardReport& what) const { report_to(reports_, what); }

  /// Reaps orphans, and looks at the program's end. Once that is known, the zombie keeps the program's id reserved.
  void reap() {
    signalfd_siginfo ignored;
    while (read(signals_, &ignored, sizeof(ignored)) > 0) {
    }
    for (siginfo_t info{}; !has_ended_ && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
         info = {}) {
      if (info.si_pid == program_) {
        has_ended_ = true;
        report({info.si_code == CLD_EXITED ? GuardReport::Exited : GuardReport::Signalled, info.si_status});
      } else {
        waitpid(info.si_pid, nullptr, 0);
      }
    }
  }

  /// Whether a child is left, other than zombies.
  bool any_left() {
    reap();
    if (!has_ended_) return true;
    pid_t reaped;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0)
      if (reaped == program_) is_reaped_ = true;  // from here on its id may be another's
    return reaped == 0;
  }

  /// Once: mpirun ends its ranks and removes its files when it is asked to, and leaves its files when asked again.
  void ask_to_end() {
    if (!was_asked_) kill(-program_, SIGTERM);
    was_asked_ = true;
  }

  /// The supervisor is gone: nothing else gives the program its time.
  void await_end() {
    for (int i = 0; i < Guard::kGrace.count() / kNap && any_left(); ++i) nap(kNap);
  }

  void kill_all() {
    for (int i = 0; i < Guard::kLongestEnd.count() / kNap; ++i) {
      if (!is_reaped_) kill(-program_, SIGKILL);
      kill_children();
      if (!any_left()) return;
      nap(kNap);
    }
  }

  static constexpr int kNap = 5;  // ms
  pid_t program_;
  int control_, reports_, signals_ = -1;
  bool has_ended_ = false, is_reaped_ = false, was_asked_ = false;
};

[[noreturn]] void become_guard(const GuardedProgram& program, int control, int reports) {
  setsid();
  reset_signals();
  prctl(PR_SET_NAME, "plumb-guard");  // not to be found by `killall plumbline`
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // a guard that its program has stopped goes on when the supervisor is killed
  const pid_t pid = start_program(program, reports);
  if (pid > 0) GuardProcess(pid, control, reports).run();
  report_to(reports, {GuardReport::NotStarted, -pid});
  _exit(0);
}

}  // namespace

Guard::Guard(const GuardedProgram& program) {
  int control[2], reports[2];
  const auto refuse = [](const char* what) { return Error(std::string(what) + ": " + std::strerror(errno)); };
  if (pipe2(control, O_CLOEXEC) != 0) throw refuse("cannot create a pipe");
  if (pipe2(reports, O_CLOEXEC) != 0) {
    const Error error = refuse("cannot create a pipe");
    close(control[0]), close(control[1]);
    throw error;
  }
  adopt_orphans();
  children_before_ = children();
  std::unique_lock lock(forking);
  guard_ = fork_alone();
  if (guard_ == 0) {
    close(control[1]), close(reports[0]);
    become_guard(program, control[0], reports[1]);
  }
  const int error = errno;
  close(control[0]), close(reports[1]);
  control_ = control[1], reports_ = reports[0];
  if (guard_ < 0) {
    close(control_), close(reports_);
    errno = error;
    throw refuse("cannot create a process");
  }
  const bool is_remembered = remember(guard_, control_);
  lock.unlock();
  if (!is_remembered) {
    end_all();
    close(reports_);
    throw Error("more than " + std::to_string(live_guards.size()) + " programs at a time");
  }
  GuardReport report{};
  const auto next = [&] {
    while (!guard_shows(POLLIN)) {
    }
    return read_fully(reports_, &report, sizeof(report)) == sizeof(report);
  };
  if (!next()) report = {GuardReport::NotStarted, ECHILD};
  if (report.kind == GuardReport::Forked) {
    pid_ = report.value;
    next();  // without another report the program runs, and has killed its guard
  }
  if (report.kind == GuardReport::NotStarted) error_ = report.value;
}

Guard::~Guard() {
  end_all();
  close(reports_);
}

Guard::Ending Guard::wait() {
  GuardReport report{GuardReport::Signalled, SIGKILL};  // without a report: the guard was killed, and the program then
  if (!has_ended_ && read_fully(reports_, &report, sizeof(report)) != sizeof(report))
    report = {GuardReport::Signalled, SIGKILL};
  if (!has_ended_) ending_ = {report.kind == GuardReport::Exited, report.value};
  has_ended_ = true;
  return ending_;
}

bool Guard::guard_shows(short event) const {
  pollfd end{reports_, event, 0};
  if (poll(&end, 1, kPatience) > 0) return true;
  kill(guard_, SIGCONT);
  return false;
}

void Guard::tell(char command) {
  // Without a reader there is SIGPIPE, which must not end this process.
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  if (write(control_, &command, 1) < 0) {
    const timespec now{};
    sigtimedwait(&pipe, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Guard::ask_to_end() {
  tell(kAskToEnd);
  kill(guard_, SIGCONT);
}

void Guard::end_all() {
  if (control_ < 0) return;
  LiveGuard* const place = place_of(guard_);
  if (place != nullptr) place->control = -1;
  // Before the guard is told: until then the zombie keeps the id of the group. A guard that was killed cannot do it,
  // and the program could stop the guard again and again.
  if (pid_ > 0 && error_ == 0) kill(-pid_, SIGKILL);
  tell(kEndAll);
  close(control_);
  control_ = -1;
  const auto limit = std::chrono::steady_clock::now() + kGrace + kLongestEnd;
  while (!guard_shows(0)) {  // it hangs up when the guard has ended
    if (std::chrono::steady_clock::now() < limit) continue;
    kill(guard_, SIGKILL);
    break;
  }
  int status = 0;
  while (waitpid(guard_, &status, 0) < 0 && errno == EINTR) {
  }
  if (place != nullptr) place->guard = 0;
  if (!WIFSIGNALED(status)) return;
  // Without its guard, all that the program left has come to this process.
  end_orphans(
      [this](pid_t pid) {
        const std::lock_guard lock(forking);
        return place_of(pid) != nullptr || ScratchFolder::is_keeper(pid) ||
               std::ranges::find(children_before_, pid) != children_before_.end();
      },
      kLongestEnd);
}

void Guard::leave_all() {
  for (LiveGuard& place : live_guards)
    if (const int control = place.control.exchange(-1); control >= 0) close(control);
  int naps = static_cast<int>((kGrace + kLongestEnd).count()) / kPatience;
  for (const LiveGuard& place : live_guards)
    for (const pid_t guard = place.guard; guard > 0 && naps > 0 && waitpid(guard, nullptr, WNOHANG) == 0; --naps) {
      kill(guard, SIGCONT);
      nap(kPatience);
    }
}

}  // namespace plumbline::conformance

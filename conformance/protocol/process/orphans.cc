#include "conformance/protocol/process/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "conformance/protocol/process/after_fork.h"

namespace plumbline::conformance {

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  // The kernel lists children by thread, and gives an orphan to any of them.
  std::error_code none;
  for (std::filesystem::directory_iterator task("/proc/self/task", none), end; !none && task != end;
       task.increment(none)) {
    std::ifstream file(task->path() / "children");
    for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
  }
  return pids;
}

void end_orphans(const std::function<bool(pid_t)>& kept, std::chrono::milliseconds longest) {
  constexpr int kNap = 5;  // ms
  for (int64_t naps = longest.count() / kNap; naps > 0; --naps) {
    bool any = false;
    for (const pid_t pid : children()) {
      if (kept(pid)) continue;
      any = true;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, WNOHANG);
    }
    if (!any) return;
    nap(kNap);
  }
}

}  // namespace plumbline::conformance

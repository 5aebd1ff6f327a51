#include "conformance/protocol/process/scratch_folder.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "conformance/protocol/process/after_fork.h"
#include "conformance/protocol/process/pipe.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

std::atomic<int> held{-1};
std::atomic<pid_t> keeper{-1};

[[noreturn]] void become_keeper(const char* folder, int end) {
  setsid();  // out of the reach of Ctrl-C
  reset_signals();
  block_signals();
  prctl(PR_SET_NAME, "plumb-keeper");
  close_others({end, -1, -1, -1});
  for (int i = 0; i < 3; ++i) open("/dev/null", O_RDWR);  // the standard descriptors of rm; `end` may be one of them
  char byte;
  read_fully(end, &byte, 1);
  execlp("rm", "rm", "-rf", "--", folder, nullptr);
  _exit(127);
}

}  // namespace

ScratchFolder::ScratchFolder() {
  Pipe pipe;
  const pid_t child = fork_alone();
  if (child == 0) become_keeper(folder_.path().c_str(), pipe.read_end.get());
  if (child < 0) throw Error(std::string("cannot create a process: ") + std::strerror(errno));
  held = pipe.write_end.release();
  keeper = child;
}

ScratchFolder::~ScratchFolder() { remove(); }

int ScratchFolder::lifeline() { return held; }

bool ScratchFolder::is_keeper(pid_t pid) { return pid == keeper; }

void ScratchFolder::remove() {
  if (const int end = held.exchange(-1); end >= 0) close(end);
  if (const pid_t child = keeper.exchange(-1); child > 0)
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace plumbline::conformance

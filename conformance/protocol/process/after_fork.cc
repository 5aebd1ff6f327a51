#include "conformance/protocol/process/after_fork.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace plumbline::conformance {
namespace {

void close_range_of(unsigned first, unsigned last) {
  constexpr unsigned kUsual = 4096;
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  for (unsigned descriptor = first; descriptor <= std::min(last, kUsual); ++descriptor)
    close(descriptor);  // Linux < 5.9
}

}  // namespace

pid_t fork_alone() {
#if __GLIBC_PREREQ(2, 34)
  return _Fork();
#else
  return fork();
#endif
}

void reset_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

void close_others(std::array<int, 4> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = 0;
  for (const int descriptor : kept) {
    if (descriptor < 0) continue;
    if (descriptor > 0) close_range_of(first, descriptor - 1);
    first = static_cast<unsigned>(descriptor) + 1;
  }
  close_range_of(first, ~0u);
}

ssize_t read_fully(int descriptor, void* to, size_t size) {
  ssize_t count;
  while ((count = read(descriptor, to, size)) < 0 && errno == EINTR) {
  }
  return count;
}

void nap(int milliseconds) {
  const timespec time{0, milliseconds * 1'000'000L};
  nanosleep(&time, nullptr);
}

}  // namespace plumbline::conformance

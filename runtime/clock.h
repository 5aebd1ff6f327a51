// Times in seconds, of the steady clock and of processors.
#pragma once

#include <time.h>

#include <chrono>

namespace plumbline {

/// The current time on the steady clock: it is comparable on one host only.
inline double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The time from `begin` until now.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The time for which processors have executed this thread (CLOCK_THREAD_CPUTIME_ID) or all threads of this process
/// (CLOCK_PROCESS_CPUTIME_ID) so far.
inline double processor_seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace plumbline

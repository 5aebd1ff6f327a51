// Helpers of the MPI sources; the only file that includes MPI's header.
#pragma once

// Without the C++ bindings, which MPI dropped in 2012.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

std::string mpi_error_text(int code);

/// Throws Error with `call` (the function's name) and MPI's text unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Implements MpiSession::abort().
[[noreturn]] void abort_mpi_job(int rank, const std::string& reason) noexcept;

/// Minimises the timer slack of the calling thread; otherwise the kernel may lengthen each sleep by 50 us.
void sleep_precisely();

/// The backoff of a waiting rank: it polls for a while, since an answer over shared memory takes about a microsecond;
/// then it sleeps 20 to 50 us between polls, since the answering rank may need this core.
class MpiPause {
 public:
  /// Sleeps begin after 20 calls of next(), but not before `polling` has passed since the 20th call.
  explicit MpiPause(Clock::duration polling = {}) : polling_(polling) {}

  /// Call after each unsuccessful poll. Returns true if it slept; the caller should then check its deadline.
  bool next();

 private:
  Clock::duration polling_;
  Clock::time_point start_;
  int polls_ = 0;
  long sleep_ns_ = 20'000;
};

}  // namespace plumbline::transport

// What the two MPI sources share. The only files that include mpi.h are those that include this one.
#pragma once

// Neither of the C++ bindings that MPI dropped in 2012.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// MPI's own text for an error code.
std::string mpi_error_text(int code);

/// Throws Error unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// MpiSession::abort.
[[noreturn]] void abort_mpi_job(int rank, const std::string& reason) noexcept;

/// Without this the kernel may stretch each sleep by 50 us; it holds for the calling thread.
void sleep_precisely();

/// How a waiting rank passes the time: it polls for a while, since an answer on shared memory takes about a
/// microsecond; then it sleeps 20 to 50 us between polls, since the rank that must answer may need this core.
class MpiPause {
 public:
  /// After 20 polls it sleeps, but not before `polling` has passed.
  explicit MpiPause(Clock::duration polling = {}) : polling_(polling) {}

  /// True if it slept, which is the time to look at the deadline.
  bool next();

 private:
  Clock::duration polling_;
  Clock::time_point start_;
  int polls_ = 0;
  long sleep_ns_ = 20'000;
};

}  // namespace plumbline::transport

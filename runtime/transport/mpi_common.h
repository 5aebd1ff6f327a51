// Shared by the MPI sources, and the only file that includes mpi.h.
#pragma once

// Without the C++ bindings, which MPI dropped in 2012.
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

/// The backoff of a waiting rank: it polls for a while, since an answer over shared memory takes about a microsecond;
/// then it sleeps 20 to 50 us between polls, since the answering rank may need this core.
class MpiPause {
 public:
  /// Sleeps begin after 20 polls, but not before `polling` has passed.
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

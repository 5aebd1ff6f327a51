// Ranks as processes of an MPI job. Messages are sent from and received into the caller's memory. A wait polls a few
// times, then sleeps between polls, so that more ranks than cores do not starve each other.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// Whether this process was started by an MPI launcher (according to the environment; MPI need not be initialised).
bool launched_under_mpi();

/// MPI for the lifetime of one scope, in the main thread (MPI_THREAD_FUNNELED); at most one per process. Transports
/// must be destroyed before it. The end of the scope waits (asleep) for all ranks; during stack unwinding it aborts the
/// job instead, since the other ranks may wait for messages that will never arrive.
class MpiSession {
 public:
  /// Throws Error if MPI cannot be initialised, or was before.
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Writes "plumbline: rank <rank>: <reason>" to stderr and ends all processes of the job with exit code 1.
  [[noreturn]] void abort(const std::string& reason) noexcept;

 private:
  int rank_ = 0;
  int size_ = 0;
  int exceptions_at_start_ = 0;
};

struct MpiTransportOptions {
  /// The number of ranks that take part, the first ones of the job; 0 means all.
  int ranks = 0;
  /// Bytes up to which a message is described by a plain count, which MPI limits to int; larger ones by a derived
  /// datatype. Smaller than the default only in tests.
  int largest_plain_message = std::numeric_limits<int>::max();
};

/// An endpoint on a new communicator. All ranks of the job call it together; ranks that do not take part get null.
/// Throws Error if there are fewer ranks than requested. Destroyed by all of its ranks together.
std::unique_ptr<Transport> make_mpi_transport(MpiSession& session, const MpiTransportOptions& options = {});

}  // namespace plumbline::transport

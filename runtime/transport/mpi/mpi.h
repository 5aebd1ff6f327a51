// Ranks as processes of an MPI job. Messages are sent from and received into the caller's memory. A wait polls for a
// short time, then sleeps between polls, so that ranks do not starve each other if there are more ranks than cores.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// Whether an MPI launcher started this process, according to environment variables. MPI need not be initialised.
bool launched_under_mpi();

/// Name and version of the MPI library, in one line: "Open MPI v4.1.4". MPI need not be initialised.
std::string mpi_library();

/// The host's name, as MPI knows it. Needs an MpiSession.
std::string mpi_host();

/// Initialises MPI for the lifetime of the object, in the main thread (MPI_THREAD_FUNNELED); only once per process.
/// Transports must be destroyed first. The destructor waits for all ranks of the job, sleeping between polls, and
/// finalises MPI; it aborts the job if that takes longer than 60 s. During stack unwinding it aborts the job at once,
/// since the other ranks may wait for messages that will never arrive.
class MpiSession {
 public:
  /// Throws Error if MPI cannot be initialised, was initialised before, or lacks MPI_THREAD_FUNNELED.
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
  /// The number of ranks that take part, which are the first ranks of the job; 0: all.
  int ranks = 0;
  /// In bytes: a message up to this size is described by a plain count, which MPI limits to int, a larger message by a
  /// derived datatype. Only tests set a smaller value.
  int largest_plain_message = std::numeric_limits<int>::max();
};

/// Makes an endpoint on a new communicator. All ranks of the job must call this function together; ranks that do not
/// take part get null. Throws Error if `options.ranks` is negative or larger than the job. All ranks that take part
/// must destroy their endpoints together.
std::unique_ptr<Transport> make_mpi_transport(MpiSession& session, const MpiTransportOptions& options = {});

}  // namespace plumbline::transport

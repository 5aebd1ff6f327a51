// Ranks as threads of one process. A message is copied once, from the sender's memory into the receiver's, by the rank
// that posts its operation second. Nothing is buffered: a send is not complete before its receive is posted. A waiting
// rank polls for a while before it sleeps (polling.h).
//
// The memory of a message may be a device's. Then the host only starts the copy: wait() returns when the copy is
// started, and the rank's compute stream waits for its end (cuda/device_copies.h); test() is false until its end.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

namespace cuda {
class DeviceCopies;
}

/// Makes connected endpoints for `ranks` ranks (at least 1), indexed by rank; each is used by one thread. An endpoint
/// may be destroyed while others are in use. `copies`, unless null, passes the messages in memory of devices, and must
/// outlive the endpoints.
std::vector<std::unique_ptr<Transport>> make_thread_transports(int ranks, cuda::DeviceCopies* copies = nullptr);

/// Runs `body` on `ranks` threads, each with its own endpoint, and returns when all threads have ended. A rank that
/// throws aborts the others, and so does one whose thread cannot be started. Rethrows the first exception that is not a
/// PeerError: an InputError or TimeoutError with its type, any other exception as Error, with the rank in its text. If
/// all exceptions are PeerErrors, rethrows the first of them.
void run_thread_ranks(int ranks, const std::function<void(Transport&)>& body, cuda::DeviceCopies* copies = nullptr);

}  // namespace plumbline::transport

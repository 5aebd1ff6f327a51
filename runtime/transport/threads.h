// Ranks as threads of one process. A message is copied once, from the sender's memory into the receiver's, by the side
// that is posted second; nothing is buffered, so a send is complete when its receive was posted.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// Endpoints for `ranks` ranks (at least 1), one for each thread, connected to each other. Each may be destroyed
/// separately, also while others are in use.
std::vector<std::unique_ptr<Transport>> make_thread_transports(int ranks);

/// Runs `body` on `ranks` threads, each with its own endpoint, and returns when all have ended. A rank that throws
/// aborts the others. The first exception that is not a PeerError is rethrown, with its type if it is one of
/// plumbline's, otherwise as Error; its text names the rank.
void run_thread_ranks(int ranks, const std::function<void(Transport&)>& body);

}  // namespace plumbline::transport

// Collective operations for the runner and the tests. They carry small control data, so gather and broadcast are linear
// in the number of ranks; the barrier takes a logarithmic number of rounds (a dissemination barrier).
//
// All ranks of the transport must make the same calls in the same order, with the same `root`. The messages use
// reserved tags, so they never match the messages of schedules. All functions throw as Transport::wait() does, and
// Error for a `root` that is no rank.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// Blocks until every rank has called barrier().
void barrier(Transport& transport, const Deadline& deadline);

/// Returns the bytes of every rank, indexed by rank, on `root`, and nothing on the other ranks. Sizes may differ.
std::vector<std::vector<std::byte>> gather_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                                 const Deadline& deadline);

/// Returns the bytes of `root` on every rank; `bytes` of the other ranks is ignored.
std::vector<std::byte> broadcast_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                       const Deadline& deadline);

/// Returns the text of rank 0 on every rank; `text` of the other ranks is ignored.
std::string broadcast_text(Transport& transport, const std::string& text, const Deadline& deadline);

/// Returns rank 0's `code` on every rank, so that all ranks end with the same exit code; `code` of the others is
/// ignored.
int agree_on(Transport& transport, int code, const Deadline& deadline);

}  // namespace plumbline::transport

// The collective operations that the runner and the tests need. They carry small control data, so simple linear
// algorithms suffice.
//
// Every rank of the transport calls the same ones in the same order. They use reserved tags, and so never match the
// messages of schedules. All throw the exceptions of Transport::wait.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// Blocks until every rank has called it.
void barrier(Transport& transport, const Deadline& deadline);

/// On `root`: the bytes of every rank, by rank (sizes may differ). Elsewhere: empty.
std::vector<std::vector<std::byte>> gather_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                                 const Deadline& deadline);

/// The bytes of `root`, on every rank; `bytes` of the other ranks is ignored.
std::vector<std::byte> broadcast_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                       const Deadline& deadline);

/// The number of rank 0, on every rank: an exit code on which all agree.
int agree_on(Transport& transport, int code, const Deadline& deadline);

}  // namespace plumbline::transport

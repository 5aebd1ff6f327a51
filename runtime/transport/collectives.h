// The few collective operations that the runner and the tests need: small control data, so plain and linear.
//
// Every rank of the transport calls the same ones in the same order. They use reserved tags, and so never meet the
// messages of schedules. All throw what Transport::wait throws.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// Returns once every rank has called it.
void barrier(Transport& transport, const Deadline& deadline);

/// On `root`: what every rank gave, by rank (sizes may differ). Elsewhere: empty.
std::vector<std::vector<std::byte>> gather_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                                 const Deadline& deadline);

/// What `root` gave, on every rank; `bytes` of the others is ignored.
std::vector<std::byte> broadcast_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                       const Deadline& deadline);

/// The number that rank 0 gave, on every rank: an exit code on which all agree.
int agree_on(Transport& transport, int code, const Deadline& deadline);

}  // namespace plumbline::transport

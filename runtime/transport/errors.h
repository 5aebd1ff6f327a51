// The errors that all transports have in common, with the same text in each of them.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

enum class Direction : uint8_t { Send, Receive };

/// Throws Error, naming this rank, `peer` and `tag`, unless 0 <= peer < size() and -kReservedTags <= tag <= max_tag().
void check_operation(const Transport& transport, Direction direction, int peer, int64_t tag);

/// Throws TimeoutError. `rank` is the waiting rank. For a receive: "rank 2: no message from rank 1 within 30 s:
/// <context>"; for a send: "rank 2: rank 1 took no message within 30 s: <context>".
[[noreturn]] void throw_timeout(int rank, Direction direction, int peer, const Deadline& deadline,
                                const WaitContext& context);

/// Throws Error. `rank` is the receiving rank, `peer` the sender; sizes in bytes. "rank 2: message from rank 1 with tag
/// 7 has 16 bytes, expected 8".
[[noreturn]] void throw_wrong_size(int rank, int peer, int64_t tag, size_t expected, size_t arrived);

/// Throws Error: a handle of rank `rank` is not empty, but its operation was withdrawn, or completed through a copy of
/// the handle.
[[noreturn]] void throw_stale_request(int rank);

}  // namespace plumbline::transport

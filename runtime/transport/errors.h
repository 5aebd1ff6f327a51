// The errors that all transports share, so that each reports them in the same words.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

enum class Direction : uint8_t { Send, Receive };

/// Throws Error unless `peer` is a rank and `tag` is a user's or a reserved one.
void check_operation(const Transport& transport, Direction direction, int peer, int64_t tag);

/// "rank 2: no message from rank 1 within 30 s: <context>"
[[noreturn]] void throw_timeout(int rank, Direction direction, int peer, const Deadline& deadline,
                                const WaitContext& context);

/// "rank 2: message from rank 1 with tag 7 has 16 bytes, expected 8"
[[noreturn]] void throw_wrong_size(int rank, int peer, int64_t tag, size_t expected, size_t arrived);

/// The request is neither outstanding nor empty: it was withdrawn, or completed through a copy of the handle.
[[noreturn]] void throw_stale_request(int rank);

}  // namespace plumbline::transport

#include "runtime/transport/errors.h"

#include <sstream>

#include "runtime/error.h"

namespace plumbline::transport {
namespace {

std::string seconds_text(Clock::duration limit) {
  std::ostringstream text;
  text.precision(3);
  text << std::chrono::duration<double>(limit).count() << " s";
  return text.str();
}

}  // namespace

void check_operation(const Transport& transport, Direction direction, int peer, int64_t tag) {
  const bool known_peer = peer >= 0 && peer < transport.size();
  const bool known_tag = tag >= -kReservedTags && tag <= transport.max_tag();
  if (known_peer && known_tag) [[likely]]
    return;
  std::string what = "rank " + std::to_string(transport.rank()) +
                     (direction == Direction::Send ? ": cannot send to rank " : ": cannot receive from rank ") +
                     std::to_string(peer);
  if (!known_peer) throw Error(what + ": ranks are 0 to " + std::to_string(transport.size() - 1));
  throw Error(what + " with tag " + std::to_string(tag) + ": tags are 0 to " + std::to_string(transport.max_tag()));
}

void throw_timeout(int rank, Direction direction, int peer, const Deadline& deadline, const WaitContext& context) {
  const std::string who = "rank " + std::to_string(rank) + ": ";
  const std::string other = "rank " + std::to_string(peer);
  const std::string what = direction == Direction::Receive ? "no message from " + other : other + " took no message";
  throw TimeoutError(who + what + " within " + seconds_text(deadline.limit()) + ": " + context.text());
}

void throw_wrong_size(int rank, int peer, int64_t tag, size_t expected, size_t arrived) {
  throw Error("rank " + std::to_string(rank) + ": message from rank " + std::to_string(peer) + " with tag " +
              std::to_string(tag) + " has " + std::to_string(arrived) + " bytes, expected " + std::to_string(expected));
}

void throw_stale_request(int rank) {
  throw Error("rank " + std::to_string(rank) +
              ": the request is not outstanding: it was withdrawn or already waited for");
}

}  // namespace plumbline::transport

#include "runtime/transport/leftovers.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace plumbline::transport {

std::unique_ptr<AgreedTraffic> Leftovers::agree_on_traffic(const Traffic& traffic, const Deadline& deadline) {
  std::unique_ptr<AgreedTraffic> agreed = ForwardingTransport::agree_on_traffic(traffic, deadline);
  announced_ = announced_ || agreed != nullptr;
  return agreed;
}

Request Leftovers::irecv(void* data, size_t bytes, int peer, int64_t tag) {
  if (tag >= 0) received_[{peer, tag}] = bytes;  // negative tags are the collectives', which run on until the end
  return ForwardingTransport::irecv(data, bytes, peer, tag);
}

void Leftovers::expect_none() {
  const auto received = std::exchange(received_, {});
  if (announced_) return;
  for (const auto& [from, bytes] : received) {
    const auto& [peer, tag] = from;
    if (!has_message(peer, tag)) continue;
    std::vector<std::byte> memory(bytes);
    Request request = ForwardingTransport::irecv(memory.data(), bytes, peer, tag);
    try {
      wait(request, Deadline::after(std::chrono::seconds(1)), "a message that is left");
    } catch (const TimeoutError&) {  // its sender died half-way; it is left nevertheless
    }
    throw Error("rank " + std::to_string(rank()) + ": a message of rank " + std::to_string(peer) + " with tag " +
                std::to_string(tag) + " is left when all have been received: it came twice, or was sent too often");
  }
}

}  // namespace plumbline::transport

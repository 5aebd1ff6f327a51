#include "runtime/transport/collectives.h"

#include <cstring>

#include <string>

namespace plumbline::transport {
namespace {

// Messages of one tag and source keep their order, so one tag per operation is enough.
constexpr int64_t kBarrierTag = -1;
constexpr int64_t kGatherTag = -2;
constexpr int64_t kBroadcastTag = -3;

/// A message whose size the receiver does not know: the size, then the bytes. `size` must live until both are complete.
struct SizedSend {
  uint64_t size;
  Request size_request, bytes_request;

  void start(Transport& transport, std::span<const std::byte> bytes, int peer, int64_t tag) {
    size = bytes.size();
    size_request = transport.isend(&size, sizeof(size), peer, tag);
    bytes_request = transport.isend(bytes.data(), bytes.size(), peer, tag);
  }

  void finish(Transport& transport, const Deadline& deadline, const char* context) {
    transport.wait(size_request, deadline, context);
    transport.wait(bytes_request, deadline, context);
  }
};

std::vector<std::byte> receive_sized(Transport& transport, int peer, int64_t tag, const Deadline& deadline,
                                     const char* context) {
  uint64_t size = 0;
  Request request = transport.irecv(&size, sizeof(size), peer, tag);
  transport.wait(request, deadline, context);
  std::vector<std::byte> bytes(size);
  request = transport.irecv(bytes.data(), bytes.size(), peer, tag);
  transport.wait(request, deadline, context);
  return bytes;
}

}  // namespace

void barrier(Transport& transport, const Deadline& deadline) {
  // Dissemination (Hensgen, Finkel, Manber 1988): after round k a rank has received a signal, directly or indirectly,
  // from the 2^(k+1) - 1 ranks before it.
  const int size = transport.size();
  for (int distance = 1; distance < size; distance *= 2) {
    const int to = (transport.rank() + distance) % size;
    const int from = (transport.rank() - distance + size) % size;
    Request receive = transport.irecv(nullptr, 0, from, kBarrierTag);
    Request send = transport.isend(nullptr, 0, to, kBarrierTag);
    const auto context = [distance] { return "barrier, at distance " + std::to_string(distance); };
    transport.wait(receive, deadline, context);
    transport.wait(send, deadline, context);
  }
}

std::vector<std::vector<std::byte>> gather_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                                 const Deadline& deadline) {
  std::vector<std::vector<std::byte>> all;
  if (transport.rank() != root) {
    SizedSend send;
    send.start(transport, bytes, root, kGatherTag);
    send.finish(transport, deadline, "gather");
    return all;
  }
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == root) {
      all.emplace_back(bytes.begin(), bytes.end());
    } else {
      all.push_back(receive_sized(transport, rank, kGatherTag, deadline, "gather"));
    }
  }
  return all;
}

std::vector<std::byte> broadcast_bytes(Transport& transport, int root, std::span<const std::byte> bytes,
                                       const Deadline& deadline) {
  if (transport.rank() != root) return receive_sized(transport, root, kBroadcastTag, deadline, "broadcast");
  std::vector<SizedSend> sends(transport.size());
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank != root) sends[rank].start(transport, bytes, rank, kBroadcastTag);
  }
  for (SizedSend& send : sends) send.finish(transport, deadline, "broadcast");
  return {bytes.begin(), bytes.end()};
}

std::string broadcast_text(Transport& transport, const std::string& text, const Deadline& deadline) {
  const std::vector<std::byte> bytes = broadcast_bytes(transport, 0, std::as_bytes(std::span(text)), deadline);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int agree_on(Transport& transport, int code, const Deadline& deadline) {
  const std::vector<std::byte> answer = broadcast_bytes(transport, 0, std::as_bytes(std::span(&code, 1)), deadline);
  std::memcpy(&code, answer.data(), sizeof code);
  return code;
}

}  // namespace plumbline::transport

#include "runtime/transport/nccl/stub/message.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/transport/nccl/stub/modes.h"

namespace plumbline::transport::nccl::stub {
namespace {

constexpr uint64_t kEagerBytes = 16 << 10;
constexpr uint64_t kShuffleMicroseconds = 1500;

/// A different one for each operation of a process, and the same in each run.
std::chrono::microseconds shuffle_delay(const Message& message) {
  uint64_t x = (message.number * 2 + message.is_send) * 0x9e3779b97f4a7c15u +
               static_cast<uint64_t>(message.stream) * 0x632be59bd9b4e019u;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  return std::chrono::microseconds((x >> 33) % kShuffleMicroseconds);
}

/// The transfer of one message, with the lock of its communicator.
class Transfer {
 public:
  Transfer(const Message& message, SharedLanes& lanes)
      : message_(message), lanes_(lanes), lane_(lanes.lanes[message.lane()]), lock_(lanes) {}

  void run(bool poisoned) {
    if (modes().shuffle) sleep(shuffle_delay(message_));
    begin();
    const bool done = message_.is_send ? send() : receive(poisoned);
    if (!done) return until([] { return false; }, /*even_failed=*/true);
    message_.mine(lanes_).phase = Position::None;
    lock_.notify();
  }

 private:
  void begin() {
    Position& mine = message_.mine(lanes_);
    mine = {Position::Running, message_.stream, message_.number, message_.bytes, {}};
    lock_.notify();
  }

  bool send() {
    if (modes().waits_for_receive() || message_.bytes > kEagerBytes) {
      const Position& receiver = lane_.receiver;
      if (!wait([&] { return receiver.phase == Position::Running && receiver.number == message_.number; }))
        return false;
      if (receiver.bytes != message_.bytes) return refuse(receiver.bytes, receiver.stream);
    }
    wait_for_demand();
    const Frame frame{message_.number, message_.bytes, message_.stream};
    return put(&frame, sizeof frame) && put(message_.memory, message_.bytes);
  }

  bool receive(bool poisoned) {
    if (modes().poison && !poisoned) poison(message_);
    Frame frame;
    if (!get(&frame, sizeof frame)) return false;
    if (frame.bytes != message_.bytes) return refuse(frame.bytes, static_cast<int>(frame.stream));
    if (!modes().poison && message_.demand == nullptr) return get(message_.memory, message_.bytes);
    std::vector<char> arrived(message_.bytes);
    if (!get(arrived.data(), arrived.size())) return false;
    wait_for_demand();
    std::copy(arrived.begin(), arrived.end(), static_cast<char*>(message_.memory));
    return true;
  }

  bool put(const void* data, uint64_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      if (!wait([&] { return lane_.written - lane_.read < LaneMemory::kRing; })) return false;
      const uint64_t place = lane_.written % LaneMemory::kRing;
      const uint64_t part =
          std::min({bytes, LaneMemory::kRing - (lane_.written - lane_.read), LaneMemory::kRing - place});
      std::memcpy(lane_.ring + place, from, part);
      from += part, bytes -= part, lane_.written += part;
      lock_.notify();
    }
    return true;
  }

  bool get(void* data, uint64_t bytes) {
    auto* to = static_cast<char*>(data);
    while (bytes > 0) {
      if (!wait([&] { return lane_.written > lane_.read; })) return false;
      const uint64_t place = lane_.read % LaneMemory::kRing;
      const uint64_t part = std::min({bytes, lane_.written - lane_.read, LaneMemory::kRing - place});
      std::memcpy(to, lane_.ring + place, part);
      to += part, bytes -= part, lane_.read += part;
      lock_.notify();
    }
    return true;
  }

  bool refuse(uint64_t theirs, int their_stream) {
    if (lanes_.failed) return false;
    Message other = message_;
    other.is_send = !message_.is_send;
    other.rank = 1 - message_.rank;
    other.bytes = theirs;
    other.stream = their_stream;
    const std::string text = "sizes differ: " + describe(message_.is_send ? message_ : other) + "; " +
                             describe(message_.is_send ? other : message_);
    std::snprintf(lanes_.error, sizeof lanes_.error, "%s", text.c_str());
    lanes_.failed = true;
    lock_.notify();
    return false;
  }

  /// False when the communicator has failed or was left.
  template <typename Condition>
  bool wait(const Condition& condition) {
    until(condition, /*even_failed=*/false);
    return !lanes_.failed && !lanes_.left[message_.rank];
  }

  template <typename Condition>
  void until(const Condition& condition, bool even_failed) {
    while (!condition() && !lanes_.left[message_.rank] && (even_failed || !lanes_.failed)) lock_.wait();
  }

  void wait_for_demand() {
    if (message_.demand == nullptr) return;
    lock_.unlock();
    message_.demand->wait();
    lock_.lock();
  }

  void sleep(std::chrono::microseconds duration) {
    lock_.unlock();
    std::this_thread::sleep_for(duration);
    lock_.lock();
  }

  const Message& message_;
  SharedLanes& lanes_;
  LaneMemory& lane_;
  LanesLock lock_;
};

std::string end_text(const Position& end, int rank, bool is_send) {
  Message message;
  message.is_send = is_send;
  message.rank = rank;
  message.bytes = end.bytes;
  message.number = end.number;
  message.stream = end.stream;
  const std::string kind = is_send ? "send" : "receive";
  switch (end.phase) {
    case Position::Running:
      return describe(message) + ", waits for its other end";
    case Position::Queued:
      return describe(message) + ", is queued" + (end.behind[0] == '\0' ? "" : " behind: " + std::string(end.behind));
    default:
      return "rank " + std::to_string(rank) + " has posted no further " + kind;
  }
}

}  // namespace

std::string describe(const Message& message) {
  return (message.is_send ? "send " : "receive ") + std::to_string(message.number) + " of rank " +
         std::to_string(message.rank) + (message.is_send ? " to rank " : " from rank ") +
         std::to_string(1 - message.rank) + ", " + std::to_string(message.bytes) + " bytes, stream " +
         std::to_string(message.stream);
}

void transfer(const Message& message, SharedLanes& lanes, bool poisoned) { Transfer(message, lanes).run(poisoned); }

void poison(const Message& message) { std::memset(message.memory, 0xff, message.bytes); }

std::string positions(SharedLanes& lanes) {
  const LanesLock lock(lanes);
  std::string text;
  for (int sender = 0; sender < 2; ++sender) {
    const LaneMemory& lane = lanes.lanes[sender];
    if (lane.sender.phase == Position::None && lane.receiver.phase == Position::None) continue;
    text += (text.empty() ? "" : "; ") + end_text(lane.sender, sender, true) + "; " +
            end_text(lane.receiver, 1 - sender, false);
  }
  return text;
}

}  // namespace plumbline::transport::nccl::stub

// Transport: messages of bytes between ranks; the only interface of the engine and the runner to the medium.
//
// A `Transport` is one rank's endpoint. It is not thread-safe: only one thread may use it (over MPI, the main thread).
// Sends and receives only start an operation; `wait` blocks until the operation is complete, and every wait has a
// deadline. Messages are matched by (source, tag) in the order in which they were posted. The receiver knows the size
// beforehand: a message of any other size is an error, never a short read.
//
// The memory of a message may be a device's where a transport says so. Its operations then follow the order of the
// rank's compute stream: they begin behind the work that was given to it before, and are "complete" for the work that
// is given to it afterwards; test() alone says that the memory itself is no longer accessed.
//
// After an error: a wait that throws has first withdrawn every outstanding operation of its rank (unless the handle was
// stale), so that buffers may be freed while the exception propagates. Code that owns buffers and may throw itself must
// call `withdraw` before it frees them. A rank that fails must call `abort`, so that the other ranks do not wait until
// their deadlines.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace plumbline::transport {

using Clock = std::chrono::steady_clock;

/// A limit that a user gave in seconds; may have a fraction. At most 1e9 s, 31 years: the clock counts to 9.2e9 s, so
/// that several times the limit can still be represented.
inline Clock::duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, 1e9)));
}

/// The point in time at which a wait fails, and the limit from which it was computed (for the text of the error).
class Deadline {
 public:
  /// `limit` from now, or the last time that the clock can represent.
  static Deadline after(Clock::duration limit);
  /// For ranks that wait while one plans, reads, judges or reports: 10 minutes plus 20 times the limit for a message.
  /// Only a rank that is stopped or lost takes longer.
  static Deadline patient(Clock::duration message_limit);
  /// An absolute time; the reported limit is the time left at construction.
  Deadline(Clock::time_point at) : at_(at), limit_(at - Clock::now()) {}

  Clock::time_point at() const { return at_; }
  Clock::duration limit() const { return limit_; }
  bool passed() const { return Clock::now() >= at_; }

 private:
  Deadline(Clock::time_point at, Clock::duration limit) : at_(at), limit_(limit) {}

  Clock::time_point at_;
  Clock::duration limit_;
};

/// The handle of an outstanding operation: an index into its transport's pool. An empty handle denotes a completed
/// operation; `wait` and a successful `test` empty the handle. Copies are possible, but a copy of a handle that was
/// emptied is stale: `test` and `wait` then throw Error.
class Request {
 public:
  Request() = default;
  Request(uint32_t slot, uint32_t generation) : slot_(slot), generation_(generation) {}

  bool empty() const { return generation_ == 0; }
  uint32_t slot() const { return slot_; }
  uint32_t generation() const { return generation_; }

 private:
  uint32_t slot_ = 0;
  uint32_t generation_ = 0;
};

/// The purpose of a wait, formatted only if the wait fails: "stage 2 waits for micro-batch 3, value h". Made from a
/// string literal or from a function object that returns a string. Does not own its source: use it as a parameter only.
class WaitContext {
 public:
  WaitContext(const char* text)
      : source_(text), describe_([](const void* source) { return std::string(static_cast<const char*>(source)); }) {}
  template <typename Describe>
    requires std::is_invocable_r_v<std::string, const Describe&> && std::is_class_v<Describe>
  WaitContext(const Describe& describe)
      : source_(&describe),
        describe_([](const void* source) -> std::string { return (*static_cast<const Describe*>(source))(); }) {}

  std::string text() const { return describe_(source_); }

 private:
  const void* source_;
  std::string (*describe_)(const void*);
};

/// Tags from -1 down to -kReservedTags belong to collectives.h and to the transports; all other code uses [0,
/// max_tag()].
inline constexpr int64_t kReservedTags = 16;

/// One message of a step, as one of its ends sees it. `peer` is another rank; in a step no tag occurs twice between a
/// sender and a receiver.
struct Parcel {
  int peer = 0;
  int64_t tag = 0;
  size_t bytes = 0;
  bool operator==(const Parcel&) const = default;
};

/// The messages between this rank and others that a step exchanges, known before it begins. Sends are in the order in
/// which they will be posted; receives may be posted in any order. A step may exchange further messages with other
/// tags.
struct Traffic {
  std::vector<Parcel> sends, receives;
};

/// Traffic on which all ranks agreed; each transport that needs it has a class of its own.
class AgreedTraffic {
 public:
  virtual ~AgreedTraffic() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// This rank, from 0, and the number of ranks.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The largest tag that callers may use.
  virtual int64_t max_tag() const = 0;

  /// Prepares for steps with this traffic; every rank calls it, in the same order, before the first of these steps. A
  /// medium whose messages have tags has nothing to prepare and returns null. A medium without tags makes its
  /// connections, and throws Error on every rank unless each send has its receive with the same size.
  virtual std::unique_ptr<AgreedTraffic> agree_on_traffic(const Traffic&, const Deadline&) { return nullptr; }

  /// Begins a step with this traffic, which must live until the next call; null: the messages that follow belong to
  /// none. All messages of the step before must be complete or withdrawn. Every rank calls it, in the same order.
  virtual void begin_traffic(AgreedTraffic*) {}

  /// Starts to send `bytes` bytes to `peer` (which may be this rank) and returns at once. The memory must stay valid
  /// and unchanged until the request is complete. Throws Error for a peer or a tag out of range and if the medium
  /// fails, and PeerError if the ranks were aborted.
  virtual Request isend(const void* data, size_t bytes, int peer, int64_t tag) = 0;

  /// Starts to receive exactly `bytes` bytes from `peer` and returns at once. The memory must stay valid until the
  /// request is complete. Throws as isend() does.
  virtual Request irecv(void* data, size_t bytes, int peer, int64_t tag) = 0;

  /// Whether a message from `peer` with this tag is there for which no receive was posted. Leaves it there. Never
  /// blocks. Throws Error for a peer or a tag out of range, and as test() does.
  virtual bool has_message(int peer, int64_t tag) = 0;

  /// Returns whether the operation is complete and, if so, empties the request; true for an empty request. Never
  /// blocks, except for the copy of a message to a device. Throws as `wait` does; TimeoutError for that copy only.
  virtual bool test(Request& request) = 0;

  /// Blocks until the operation is complete, then empties the request; returns at once for an empty request. Throws
  /// TimeoutError at the deadline (naming the peer, the limit and the context), PeerError if the ranks were aborted,
  /// and Error if a message of another size arrived (naming both sizes), if the request is stale, or if the medium
  /// fails.
  virtual void wait(Request& request, const Deadline& deadline, const WaitContext& context) = 0;

  /// Drops every outstanding operation of this rank: afterwards their memory is no longer accessed and their requests
  /// are stale. May block until a copy in progress has ended. Over MPI a send cannot be withdrawn; `abort` must follow.
  virtual void withdraw() noexcept = 0;

  /// Stops every rank, with this rank's reason. On threads: withdraws, and from then on all pending and later isend,
  /// irecv, test and wait calls of all ranks throw PeerError with the first reason given. Over MPI: prints the reason,
  /// ends all processes of the job and does not return.
  virtual void abort(const std::string& reason) noexcept = 0;

 protected:
  /// Returns call(). Withdraws if it throws, as a wait that throws must; a wrapper thereby drops what it has held back.
  template <class Call>
  auto guarded(const Call& call) -> decltype(call()) {
    try {
      return call();
    } catch (...) {
      withdraw();
      throw;
    }
  }
};

}  // namespace plumbline::transport

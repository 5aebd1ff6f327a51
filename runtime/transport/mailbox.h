// The operations posted for one receiving rank that wait for their counterpart: sends to it, and its own receives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/transport/errors.h"

namespace plumbline::transport {

/// The memory, endpoints and tag of an operation.
struct Transfer {
  Direction direction;
  void* memory;  // of a send: only read
  size_t bytes;
  int source;       // the sending rank
  int destination;  // the receiving rank, whose mailbox it is posted in
  int64_t tag;
};

/// One outstanding operation.
struct PostedOperation : Transfer {
  /// Reuses the slot of a completed operation for a new one.
  void begin(const Transfer& transfer) {
    Transfer::operator=(transfer);
    arrived = 0;
    done.store(false, std::memory_order_relaxed);
  }

  bool posted = false;              // in the mailbox, without a counterpart yet; guarded by the mailbox's lock
  PostedOperation* next = nullptr;  // in its bucket; guarded by the mailbox's lock
  size_t arrived = 0;               // size of the received message; valid once done
  std::atomic<bool> done{false};
};

/// A hash table of queues, keyed by (source, tag); the queues are linked through the operations themselves, so that
/// posting and taking allocate nothing. Not thread safe.
class Mailbox {
 public:
  Mailbox() : buckets_(64) {}

  /// Appends; the operation must stay where it is until it is taken or removed.
  void post(PostedOperation& operation);

  /// Removes and returns the oldest operation of this direction, source and tag; null if there is none.
  PostedOperation* take(Direction direction, int source, int64_t tag);

  /// Removes this operation from any place in its queue.
  void remove(PostedOperation& operation);

 private:
  struct Bucket {
    PostedOperation* head = nullptr;
    PostedOperation* tail = nullptr;
  };

  Bucket& bucket_of(int source, int64_t tag);
  void grow();
  void unlink(Bucket& bucket, PostedOperation* previous, PostedOperation& operation);

  std::vector<Bucket> buckets_;  // a power of two of them, at least as many as operations
  size_t posted_ = 0;
};

}  // namespace plumbline::transport

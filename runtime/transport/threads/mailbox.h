// Mailbox: the operations of one receiving rank that have no counterpart yet: sends to this rank, and its own receives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/transport/cuda/mark.h"
#include "runtime/transport/errors.h"

namespace plumbline::transport {

/// The memory, endpoints and tag of an operation.
struct Transfer {
  Direction direction;
  void* memory;  // only read for a send; null for an MPI message that arrived before its receive
  size_t bytes;
  int source;       // the sending rank
  int destination;  // the receiving rank, whose mailbox it is posted in
  int64_t tag;
};

/// One outstanding operation.
struct PostedOperation : Transfer {
  /// Starts a new operation in the slot of a completed one.
  void begin(const Transfer& transfer) {
    Transfer::operator=(transfer);
    arrived = 0;
    mark = {};
    done.store(false, std::memory_order_relaxed);
  }

  bool posted = false;              // in the mailbox, without a counterpart; guarded by the mailbox owner's lock
  PostedOperation* next = nullptr;  // in the same bucket; guarded by the mailbox owner's lock
  cuda::Mark mark;                  // of memory of a device: before the copy, then, once done, behind it
  size_t arrived = 0;               // bytes of the received message; valid once done
  std::atomic<bool> done{false};
};

/// A hash table of queues, keyed by (source, tag). The queues are linked through the operations themselves, so nothing
/// is allocated except when the table grows. A Mailbox has no lock: callers must synchronise.
class Mailbox {
 public:
  Mailbox() : buckets_(64) {}

  /// Appends the operation to its queue. The operation is not copied: it must not move or be destroyed until it is
  /// taken or removed.
  void post(PostedOperation& operation);

  /// Returns the oldest operation with this direction, source and tag; null if there is none.
  PostedOperation* find(Direction direction, int source, int64_t tag);

  /// Removes and returns the oldest operation with this direction, source and tag; null if there is none.
  PostedOperation* take(Direction direction, int source, int64_t tag);

  /// Removes the operation from its queue, at any position; does nothing if it is not in the mailbox.
  void remove(PostedOperation& operation);

 private:
  struct Bucket {
    PostedOperation* head = nullptr;
    PostedOperation* tail = nullptr;
  };

  Bucket& bucket_of(int source, int64_t tag);
  void grow();
  void unlink(Bucket& bucket, PostedOperation* previous, PostedOperation& operation);

  std::vector<Bucket> buckets_;  // their number is a power of two and at least the number of operations
  size_t posted_ = 0;
};

}  // namespace plumbline::transport

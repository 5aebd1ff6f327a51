// The memory that the two ranks of a communicator share, as processes or as threads: for each direction a lane with a
// small ring of bytes, and what each end is doing. A rank that is killed does not keep the other one waiting for a
// lock.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace plumbline::transport::nccl::stub {

/// The operation at which one end of a lane is.
struct Position {
  enum Phase : int32_t { None, Queued, Running };

  Phase phase;
  int32_t stream;   // its number in the process of this end
  uint64_t number;  // counts the operations of the end, from 0
  uint64_t bytes;
  char behind[160];  // if queued: the task before it on its stream
};

/// Precedes each message in the ring.
struct Frame {
  uint64_t number, bytes;
  int64_t stream;
};

struct LaneMemory {
  static constexpr uint64_t kRing = 1 << 16;

  Position sender, receiver;
  uint64_t written, read;  // bytes of the ring so far
  char ring[kRing];
};

struct SharedLanes {
  std::atomic<uint32_t> ready;  // kReady once the rest is initialised
  int32_t attached;             // the number of ranks that have come
  bool left[2];                 // by rank: its communicator was aborted
  bool failed;                  // a transfer failed, for the reason in `error`
  char error[640];
  pthread_mutex_t mutex;  // robust
  /// Counts notifications, and is the futex of those who wait for one. A condition variable would not do: the next ones
  /// to be notified would wait for a waiter that was killed.
  std::atomic<uint32_t> changes;
  LaneMemory lanes[2];  // by sending rank

  static constexpr uint32_t kReady = 0x706c6234;
};

/// Maps the memory with this name, which the first of the two ranks to come creates. Null if that fails; `error` then
/// says why.
SharedLanes* attach_lanes(const std::string& name, std::string& error);
void detach_lanes(SharedLanes* lanes);
/// Frees the name; both ranks keep the memory.
void forget_name(const std::string& name);

/// The communicator has failed if the other rank was killed while it had the lock.
class LanesLock {
 public:
  explicit LanesLock(SharedLanes& lanes) : lanes_(lanes) { lock(); }
  ~LanesLock() { unlock(); }
  LanesLock(const LanesLock&) = delete;
  LanesLock& operator=(const LanesLock&) = delete;

  void lock();
  void unlock() { pthread_mutex_unlock(&lanes_.mutex); }
  /// Returns after a notification, or 50 ms later: a rank that was killed sends none.
  void wait();
  void notify();

 private:
  SharedLanes& lanes_;
};

}  // namespace plumbline::transport::nccl::stub

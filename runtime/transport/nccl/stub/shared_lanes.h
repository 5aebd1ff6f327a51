// The memory that the two ranks of a communicator share, as processes or as threads: for each direction a lane with a
// small ring of bytes, and what each end is doing.
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
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  LaneMemory lanes[2];  // by sending rank

  static constexpr uint32_t kReady = 0x706c6233;
};

/// Maps the memory with this name, which the first of the two ranks to come creates. Null if that fails; `error` then
/// says why.
SharedLanes* attach_lanes(const std::string& name, std::string& error);
void detach_lanes(SharedLanes* lanes);
/// Frees the name; both ranks keep the memory.
void forget_name(const std::string& name);

class LanesLock {
 public:
  explicit LanesLock(SharedLanes& lanes) : lanes_(lanes) { lock(); }
  ~LanesLock() { unlock(); }
  LanesLock(const LanesLock&) = delete;
  LanesLock& operator=(const LanesLock&) = delete;

  void lock() { pthread_mutex_lock(&lanes_.mutex); }
  void unlock() { pthread_mutex_unlock(&lanes_.mutex); }
  void wait() { pthread_cond_wait(&lanes_.changed, &lanes_.mutex); }
  void notify() { pthread_cond_broadcast(&lanes_.changed); }

 private:
  SharedLanes& lanes_;
};

}  // namespace plumbline::transport::nccl::stub

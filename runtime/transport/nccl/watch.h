// Watch: how the host waits for NCCL and CUDA. It asks, sleeps, and lets the control transport progress, since a peer
// may need that before it can answer over NCCL.
#pragma once

#include <algorithm>
#include <thread>

#include "runtime/transport/transport.h"

namespace plumbline::transport::nccl {

/// Tags of the transport's own messages over the control transport. Other code has those down to -6 (collectives.cc,
/// clock_offset.cc, shared_flights.cc).
inline constexpr int64_t kHeartbeatTag = -8, kIdTag = -9;

class Watch {
 public:
  /// `control` must outlive the watch.
  explicit Watch(Transport& control) : control_(control) {}

  /// Asks `done` until it is true, or the deadline has passed (false). Also throws what `done` and the control
  /// transport throw: PeerError if the ranks were aborted.
  template <typename Done>
  bool await(const Done& done, const Deadline& deadline) {
    constexpr int kPolls = 20;  // a stream that is idle answers at once
    auto pause = std::chrono::microseconds(20);
    for (int asked = 0; !done(); ++asked) {
      if (asked < kPolls) continue;
      progress();
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(pause);
      pause = std::min(pause + std::chrono::microseconds(5), std::chrono::microseconds(100));
    }
    return true;
  }

  /// Call after control.withdraw().
  void withdrawn() { heartbeat_ = Request(); }

 private:
  /// An MPI transport progresses all its operations when an incomplete one is tested, so there is one that never
  /// completes.
  void progress() {
    if (heartbeat_.empty()) heartbeat_ = control_.irecv(nullptr, 0, control_.rank(), kHeartbeatTag);
    control_.test(heartbeat_);
  }

  Transport& control_;
  Request heartbeat_;
};

}  // namespace plumbline::transport::nccl

// Demand: in the mode `late` an operation accesses memory only when the host demands it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace plumbline::transport::nccl::stub {

class Demand {
 public:
  /// The host asked for something that comes after the operation.
  void ask() {
    {
      std::lock_guard lock(mutex_);
      asked_ = true;
    }
    changed_.notify_all();
  }
  /// Blocks until ask(), for 200 ms at most: NCCL's operations do not depend on the host.
  void wait() {
    constexpr auto kLongest = std::chrono::milliseconds(200);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLongest, [this] { return asked_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
};

}  // namespace plumbline::transport::nccl::stub

// Demand: how the mode `late` puts off what an operation does to memory until the host would notice.
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
  /// Until it asks. NCCL's operations do not depend on the host, so the wait ends in any case.
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

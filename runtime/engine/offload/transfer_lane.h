// TransferLane: a thread that executes transfers one after another, beside the thread that computes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

class TransferLane {
 public:
  TransferLane();
  /// Drops the transfers that have not begun, and waits for the end of the running one.
  ~TransferLane();
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  /// Begins `work` after all earlier transfers; returns its number. Does not block.
  uint64_t begin(std::function<void()> work);

  /// Waits until transfer `number` and all before it have ended. Throws the first error of any transfer, after which no
  /// other is executed, and TimeoutError with `what`.
  void wait(uint64_t number, const transport::Deadline& deadline, const transport::WaitContext& what);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::deque<std::function<void()>> waiting_;
  uint64_t begun_count_ = 0, ended_count_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace plumbline::engine

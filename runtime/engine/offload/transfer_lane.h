// TransferLane: a thread that executes transfers one after another, beside the thread that computes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

class TransferLane {
 public:
  static constexpr std::chrono::seconds kPatience{2};

  TransferLane();
  /// Drops the transfers that have not begun, and waits for the end of the running one, but not longer than kPatience:
  /// a store may hang. The thread then ends after it; what the transfer uses must live as long.
  ~TransferLane();
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  /// Begins `work` after all earlier transfers; returns its number. Does not block.
  uint64_t begin(std::function<void()> work);

  /// Waits until transfer `number` and all before it have ended. Throws the first error of any transfer, after which no
  /// other is executed, and TimeoutError with `what`.
  void wait(uint64_t number, const transport::Deadline& deadline, const transport::WaitContext& what);

 private:
  /// Shared with the thread, which may outlive the lane.
  struct State {
    void run();

    std::mutex mutex;
    std::condition_variable begun, ended;
    std::deque<std::function<void()>> waiting;
    uint64_t begun_count = 0, ended_count = 0;
    bool stop = false, over = false;
    std::exception_ptr error;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace plumbline::engine

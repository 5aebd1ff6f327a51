#include "runtime/engine/offload/transfer_lane.h"

#include "runtime/error.h"

namespace plumbline::engine {

TransferLane::TransferLane() : thread_([this] { run(); }) {}

TransferLane::~TransferLane() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  begun_.notify_one();
  thread_.join();
}

uint64_t TransferLane::begin(std::function<void()> work) {
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(work));
    number = ++begun_count_;
  }
  begun_.notify_one();
  return number;
}

void TransferLane::wait(uint64_t number, const transport::Deadline& deadline, const transport::WaitContext& what) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto over = [&] { return ended_count_ >= number || error_; };
  if (!ended_.wait_until(lock, deadline.at(), over))
    throw TimeoutError(what.text() + ": the transfer from the store did not end in time");
  if (error_) std::rethrow_exception(error_);
}

void TransferLane::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    const bool failed = error_ != nullptr;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!failed) work();
    } catch (...) {
      error = std::current_exception();
    }
    work = nullptr;  // frees what it held, outside the lock
    lock.lock();
    if (error) error_ = error;
    ++ended_count_;
    ended_.notify_all();
  }
}

}  // namespace plumbline::engine

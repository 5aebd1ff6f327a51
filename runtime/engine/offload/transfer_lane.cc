#include "runtime/engine/offload/transfer_lane.h"

#include <utility>

#include "runtime/error.h"

namespace plumbline::engine {

TransferLane::TransferLane() : thread_([state = state_] { state->run(); }) {}

TransferLane::~TransferLane() {
  std::deque<std::function<void()>> dropped;  // with what they hold: freed outside the lock
  bool over = false;
  {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->stop = true;
    dropped = std::exchange(state_->waiting, {});
    state_->begun.notify_one();
    over = state_->ended.wait_for(lock, kPatience, [this] { return state_->over; });
  }
  if (over)
    thread_.join();
  else
    thread_.detach();
}

uint64_t TransferLane::begin(std::function<void()> work) {
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->waiting.push_back(std::move(work));
    number = ++state_->begun_count;
  }
  state_->begun.notify_one();
  return number;
}

void TransferLane::wait(uint64_t number, const transport::Deadline& deadline, const transport::WaitContext& what) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const auto over = [&] { return state_->ended_count >= number || state_->error; };
  if (!state_->ended.wait_until(lock, deadline.at(), over))
    throw TimeoutError(what.text() + ": the transfer from the store did not end in time");
  if (state_->error) std::rethrow_exception(state_->error);
}

void TransferLane::State::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    begun.wait(lock, [&] { return stop || !waiting.empty(); });
    if (stop) break;
    std::function<void()> work = std::move(waiting.front());
    waiting.pop_front();
    const bool failed = error != nullptr;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      if (!failed) work();
    } catch (...) {
      thrown = std::current_exception();
    }
    work = nullptr;  // frees what it held, outside the lock
    lock.lock();
    if (thrown) error = thrown;
    ++ended_count;
    ended.notify_all();
  }
  over = true;
  ended.notify_all();
}

}  // namespace plumbline::engine

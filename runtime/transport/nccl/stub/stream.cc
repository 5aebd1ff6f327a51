#include "runtime/transport/nccl/stub/stream.h"

#include <atomic>
#include <ranges>
#include <thread>

namespace plumbline::transport::nccl::stub {

void Signal::set() {
  {
    std::lock_guard lock(mutex_);
    set_ = true;
  }
  changed_.notify_all();
}

bool Signal::is_set() const {
  std::lock_guard lock(mutex_);
  return set_;
}

void Signal::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return set_; });
}

std::shared_ptr<StreamQueue> StreamQueue::start() {
  static std::atomic<int> count = 0;
  std::shared_ptr<StreamQueue> queue(new StreamQueue(count++));
  std::thread([queue] { queue->run(); }).detach();
  return queue;
}

void StreamQueue::push(std::function<void()> task, std::string what) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(task), std::move(what)});
  }
  changed_.notify_one();
}

std::string StreamQueue::last_task() const {
  std::lock_guard lock(mutex_);
  for (const Task& task : tasks_ | std::views::reverse)
    if (!task.what.empty()) return task.what;
  return {};
}

std::shared_ptr<Signal> StreamQueue::record() {
  auto signal = std::make_shared<Signal>();
  bool idle;
  {
    std::lock_guard lock(mutex_);
    idle = tasks_.empty();
  }
  if (idle)
    signal->set();
  else
    push([signal] { signal->set(); });
  return signal;
}

void StreamQueue::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

void StreamQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front().run);
    lock.unlock();
    task();
    lock.lock();
    tasks_.pop_front();
  }
}

}  // namespace plumbline::transport::nccl::stub

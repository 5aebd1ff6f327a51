#include "runtime/transport/nccl/stub/stream.h"

#include <atomic>
#include <ranges>
#include <thread>
#include <vector>

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

bool Signal::query() const {
  if (is_set()) return true;
  if (on_query) on_query();
  return false;
}

std::shared_ptr<StreamQueue> StreamQueue::start() {
  static std::atomic<int> count = 0;
  std::shared_ptr<StreamQueue> queue(new StreamQueue(count++));
  std::thread([queue] { queue->run(); }).detach();
  return queue;
}

void StreamQueue::push(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
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
  uint64_t before;
  {
    std::lock_guard lock(mutex_);
    if (tasks_.empty()) {
      signal->set();
      return signal;
    }
    before = ended_ + tasks_.size();
  }
  signal->on_query = [queue = weak_from_this(), before] {
    if (const auto alive = queue.lock()) alive->notify_query(before);
  };
  push({[signal] { signal->set(); }});
  return signal;
}

void StreamQueue::notify_query(uint64_t tasks) {
  std::vector<std::function<void()>> callbacks;  // called without the lock
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < tasks_.size() && ended_ + i < tasks; ++i)
      if (tasks_[i].on_query) callbacks.push_back(tasks_[i].on_query);
  }
  for (const auto& callback : callbacks) callback();
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
    ++ended_;
  }
}

}  // namespace plumbline::transport::nccl::stub

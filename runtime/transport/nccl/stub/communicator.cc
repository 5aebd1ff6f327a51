#include "runtime/transport/nccl/stub/communicator.h"

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "runtime/transport/nccl/stub/memory_in_use.h"
#include "runtime/transport/nccl/stub/modes.h"

namespace plumbline::transport::nccl::stub {
namespace {

MemoryInUse& memory_in_use() {
  static MemoryInUse& memory = *new MemoryInUse;  // for threads that outlive main()
  return memory;
}

}  // namespace

StubCommunicator::~StubCommunicator() {
  if (lanes_ != nullptr) detach_lanes(lanes_);
}

Result StubCommunicator::begin() {
  if (blocking_) return meet();
  std::thread([self = shared_from_this()] { self->meet(); }).detach();
  return Result::InProgress;
}

Result StubCommunicator::meet() {
  std::string error;
  SharedLanes* const lanes = attach_lanes(name_, error);
  Result result = lanes == nullptr ? Result::SystemError : Result::Success;
  if (lanes != nullptr) {
    {
      const LanesLock lock(*lanes);
      if (++lanes->attached == 2) forget_name(name_);
    }
    const auto both = [&] {
      const LanesLock lock(*lanes);
      return lanes->attached == 2;
    };
    const auto aborted = [&] {
      std::lock_guard lock(mutex_);
      return aborted_;
    };
    while (!both() && !aborted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!both()) forget_name(name_);
  }
  std::lock_guard lock(mutex_);
  lanes_ = lanes;
  error_ = error;
  return meeting_ = result;
}

Result StubCommunicator::post(Message message, int peer, std::shared_ptr<StreamQueue> stream) {
  std::lock_guard lock(mutex_);
  if (peer != 1 - rank_) {
    error_ = "rank " + std::to_string(rank_) + " of a communicator of two has no peer " + std::to_string(peer) +
             (peer == rank_ ? ": a message to itself needs a group, which the stub does not have" : "");
    return Result::InvalidUsage;
  }
  if (meeting_ != Result::Success || aborted_) {
    error_ = "an operation on a communicator that is not ready";
    return Result::InvalidUsage;
  }
  message.rank = rank_;
  message.number = posted_[message.is_send]++;
  message.stream = stream->number();
  const bool alone = memory_in_use().add(message.memory, message.bytes);
  const bool poisoned = modes().poison && !message.is_send && alone;
  if (poisoned) poison(message);
  auto put = [self = shared_from_this(), message, stream = std::move(stream), poisoned] {
    self->enqueue(message, stream, poisoned);
  };
  if (blocking_) {
    put();
    return Result::Success;
  }
  deferred_.push_back(std::move(put));
  return Result::InProgress;
}

/// The caller holds the lock.
void StubCommunicator::enqueue(const Message& message, const std::shared_ptr<StreamQueue>& stream, bool poisoned) {
  waiting_[message.is_send].push_back({message.number, message.bytes, message.stream, stream->last_task()});
  if (waiting_[message.is_send].size() == 1) show_next(message.is_send);
  StreamQueue::Task task;
  task.run = [self = shared_from_this(), message, poisoned] {
    transfer(message, *self->lanes_, poisoned);
    self->finish(message);
  };
  if (message.demand != nullptr && !message.is_send) task.on_query = [demand = message.demand] { demand->ask(); };
  task.what = describe(message);
  stream->push(std::move(task));
}

void StubCommunicator::finish(const Message& message) {
  memory_in_use().remove(message.memory, message.bytes);
  std::lock_guard lock(mutex_);
  waiting_[message.is_send].pop_front();
  show_next(message.is_send);
}

/// Writes the next operation on a stream into the shared memory, for the other rank to name. The caller holds the lock.
void StubCommunicator::show_next(bool sends) {
  const LanesLock lock(*lanes_);
  Message message;
  message.is_send = sends;
  message.rank = rank_;
  Position& mine = message.mine(*lanes_);
  if (waiting_[sends].empty() || mine.phase == Position::Running) return;
  const Waiting& next = waiting_[sends].front();
  mine = {Position::Queued, next.stream, next.number, next.bytes, {}};
  std::snprintf(mine.behind, sizeof mine.behind, "%s", next.behind.c_str());
}

Result StubCommunicator::finalize() {
  {
    std::lock_guard lock(mutex_);
    finalized_ = true;
  }
  return state();
}

Result StubCommunicator::state() {
  std::lock_guard lock(mutex_);
  if (meeting_ != Result::Success) return meeting_;
  for (const auto& put : std::exchange(deferred_, {})) put();
  const LanesLock shared(*lanes_);
  if (lanes_->failed) return Result::InvalidUsage;
  const bool busy = !waiting_[0].empty() || !waiting_[1].empty();
  return finalized_ && busy ? Result::InProgress : Result::Success;
}

const char* StubCommunicator::last_error() {
  std::lock_guard lock(mutex_);
  if (lanes_ != nullptr) {
    std::string shared = positions(*lanes_);
    {
      const LanesLock lanes(*lanes_);
      if (lanes_->failed) shared = lanes_->error;
    }
    if (!shared.empty()) error_ = shared;
  }
  return error_.c_str();
}

void StubCommunicator::abort() {
  std::lock_guard lock(mutex_);
  aborted_ = true;
  for (const auto& put : std::exchange(deferred_, {})) put();
  if (lanes_ == nullptr) return;
  LanesLock shared(*lanes_);
  lanes_->left[rank_] = true;
  shared.notify();
}

}  // namespace plumbline::transport::nccl::stub

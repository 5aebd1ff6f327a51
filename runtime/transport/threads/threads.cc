#include "runtime/transport/threads/threads.h"

#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>

#include "runtime/error.h"
#include "runtime/transport/cuda/device_copies.h"
#include "runtime/transport/machine/own_cores.h"
#include "runtime/transport/polling.h"
#include "runtime/transport/slot_pool.h"
#include "runtime/transport/threads/mailbox.h"

namespace plumbline::transport {
namespace {

/// The shared state of one rank.
struct RankState {
  std::mutex mutex;  // guards the members below, and the setting of `done` in this rank's operations
  Mailbox mailbox;
  const PostedOperation* waiting_for = nullptr;  // only the completion of this operation wakes the rank
  std::condition_variable woken;
};

struct Hub {
  Hub(int size, cuda::DeviceCopies* device_copies)
      : ranks(size), copies(device_copies), polling(polling_time(size, static_cast<int>(own_cores().size()))) {}

  std::vector<RankState> ranks;
  cuda::DeviceCopies* const copies;  // null: all memory is the host's
  const Clock::duration polling;     // before a wait sleeps

  std::mutex abort_mutex;
  std::string abort_text;            // guarded by abort_mutex
  std::atomic<bool> aborted{false};  // set after the text
};

/// After this the operation's owner may reuse it: neither it nor its memory may be touched any more.
void complete(RankState& owner, PostedOperation& operation, size_t arrived) {
  bool wake;
  {
    std::lock_guard lock(owner.mutex);
    operation.arrived = arrived;
    operation.done.store(true, std::memory_order_release);
    wake = owner.waiting_for == &operation;
  }
  if (wake) owner.woken.notify_one();
}

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank), self_(hub_->ranks[rank]) {}
  ~ThreadTransport() override { withdraw(); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hub_->ranks.size()); }
  int64_t max_tag() const override { return std::numeric_limits<int64_t>::max(); }

  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    check_operation(*this, Direction::Send, peer, tag);
    throw_if_aborted();
    // The memory of a send is only read; the cast lets both directions share one record.
    const Transfer transfer{Direction::Send, const_cast<void*>(data), bytes, rank_, peer, tag};
    cuda::Mark mark = mark_for(transfer);
    RankState& receiver = hub_->ranks[peer];
    std::unique_lock lock(receiver.mutex);
    PostedOperation* receive = receiver.mailbox.take(Direction::Receive, rank_, tag);
    if (receive == nullptr) return post(receiver, transfer, mark);
    lock.unlock();
    if (receive->bytes == bytes) copy(transfer, mark, receiver, *receive, receive->memory, data);
    complete(receiver, *receive, bytes);
    return mark.empty() ? Request() : ended(transfer, bytes, mark);
  }

  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    check_operation(*this, Direction::Receive, peer, tag);
    throw_if_aborted();
    const Transfer transfer{Direction::Receive, data, bytes, peer, rank_, tag};
    cuda::Mark mark = mark_for(transfer);
    std::unique_lock lock(self_.mutex);
    PostedOperation* send = self_.mailbox.take(Direction::Send, peer, tag);
    if (send == nullptr) return post(self_, transfer, mark);
    lock.unlock();
    const size_t arrived = send->bytes;
    if (arrived == bytes) copy(transfer, mark, hub_->ranks[peer], *send, data, send->memory);
    complete(hub_->ranks[peer], *send, arrived);
    // Another size is reported by the wait, as if the message had arrived later.
    return arrived == bytes && mark.empty() ? Request() : ended(transfer, arrived, mark);
  }

  bool has_message(int peer, int64_t tag) override {
    check_operation(*this, Direction::Receive, peer, tag);
    throw_if_aborted();
    std::lock_guard lock(self_.mutex);
    return self_.mailbox.find(Direction::Send, peer, tag) != nullptr;
  }

  bool test(Request& request) override {
    throw_if_aborted();
    if (request.empty()) return true;
    PostedOperation& operation = pool_.at(request, rank_);
    if (!operation.done.load(std::memory_order_acquire)) return false;
    if (!guarded([&] { return operation.mark.empty() || hub_->copies->has_passed(operation.mark); })) return false;
    finish(request, operation);
    return true;
  }

  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override {
    throw_if_aborted();
    if (request.empty()) return;
    PostedOperation& operation = pool_.at(request, rank_);
    if (!is_done_soon(operation) && !sleep_until_done(operation, deadline)) {
      throw_if_aborted();
      const Direction direction = operation.direction;
      const int peer = direction == Direction::Send ? operation.destination : operation.source;
      withdraw();
      throw_timeout(rank_, direction, peer, deadline, context);
    }
    finish(request, operation);
  }

  void withdraw() noexcept override {
    pool_.drain([this](PostedOperation& operation) {
      take_back(operation);
      if (hub_->copies != nullptr) hub_->copies->drop(rank_, operation.mark);
    });
  }

  void abort(const std::string& reason) noexcept override {
    withdraw();
    {
      std::lock_guard lock(hub_->abort_mutex);
      if (!hub_->aborted.load(std::memory_order_relaxed)) {
        const std::string who = "rank " + std::to_string(rank_);
        hub_->abort_text = reason.starts_with(who + ":") ? reason : who + ": " + reason;
        hub_->aborted.store(true, std::memory_order_release);
      }
    }
    for (RankState& state : hub_->ranks) {
      {
        std::lock_guard lock(state.mutex);
      }  // a rank about to sleep has either seen the flag or is asleep by now
      state.woken.notify_all();
    }
  }

 private:
  /// Caller holds the lock of `receiver`, whose mailbox it goes into.
  Request post(RankState& receiver, const Transfer& transfer, const cuda::Mark& mark) {
    Request request;
    PostedOperation& operation = pool_.take(request);
    operation.begin(transfer);
    operation.mark = mark;
    receiver.mailbox.post(operation);
    return request;
  }

  /// An operation of this rank whose counterpart had been posted.
  Request ended(const Transfer& transfer, size_t arrived, const cuda::Mark& mark) {
    Request request;
    PostedOperation& operation = pool_.take(request);
    operation.begin(transfer);
    operation.mark = mark;
    operation.arrived = arrived;
    operation.done.store(true, std::memory_order_relaxed);
    return request;
  }

  /// Empty for memory of the host.
  cuda::Mark mark_for(const Transfer& transfer) const {
    if (hub_->copies == nullptr || transfer.bytes == 0 || !hub_->copies->is_device_memory(transfer.memory)) return {};
    return hub_->copies->mark(rank_);
  }

  /// `other` is the counterpart, which is `owner`'s and completes in any case.
  void copy(const Transfer& mine, cuda::Mark& mark, RankState& owner, PostedOperation& other, void* to,
            const void* from) {
    if (mark.empty() && other.mark.empty()) return copy_bytes(to, from, mine.bytes);
    const bool sends = mine.direction == Direction::Send;
    try {
      if (mark.empty() != other.mark.empty())
        throw Error("rank " + std::to_string(rank_) + ": the message " + (sends ? "to rank " : "from rank ") +
                    std::to_string(sends ? mine.destination : mine.source) + " with tag " + std::to_string(mine.tag) +
                    " goes between memory of a device and memory of the host");
      hub_->copies->copy(mine.source, mine.destination, to, from, mine.bytes, sends ? mark : other.mark,
                         sends ? other.mark : mark);
    } catch (...) {
      complete(owner, other, other.bytes);
      hub_->copies->drop(rank_, mark);
      withdraw();
      throw;
    }
  }

  /// Afterwards no other thread touches the operation or starts a copy of its memory.
  void take_back(PostedOperation& operation) {
    RankState& receiver = hub_->ranks[operation.destination];
    {
      std::lock_guard lock(receiver.mutex);
      if (operation.posted) return receiver.mailbox.remove(operation);
    }
    // Already matched: the copy in progress ends soon.
    std::unique_lock lock(self_.mutex);
    self_.waiting_for = &operation;
    self_.woken.wait(lock, [&] { return operation.done.load(std::memory_order_relaxed); });
    self_.waiting_for = nullptr;
  }

  /// Polls. The thread that completes the operation need not wake this one, which costs both of them a system call.
  bool is_done_soon(const PostedOperation& operation) const {
    if (operation.done.load(std::memory_order_acquire)) return true;
    if (hub_->polling == Clock::duration()) return false;
    const Clock::time_point end = Clock::now() + hub_->polling;
    while (!operation.done.load(std::memory_order_acquire))
      if (Clock::now() >= end) return false;
    return true;
  }

  /// False at the deadline, or when the ranks were aborted.
  bool sleep_until_done(PostedOperation& operation, const Deadline& deadline) {
    std::unique_lock lock(self_.mutex);
    self_.waiting_for = &operation;
    self_.woken.wait_until(lock, deadline.at(), [&] {
      return operation.done.load(std::memory_order_relaxed) || hub_->aborted.load(std::memory_order_relaxed);
    });
    self_.waiting_for = nullptr;
    return operation.done.load(std::memory_order_relaxed);
  }

  void finish(Request& request, PostedOperation& operation) {
    const PostedOperation* received = operation.direction == Direction::Receive ? &operation : nullptr;
    if (received != nullptr && received->arrived != received->bytes) {
      const int source = received->source;
      const int64_t tag = received->tag;
      const size_t expected = received->bytes;
      const size_t arrived = received->arrived;
      withdraw();
      throw_wrong_size(rank_, source, tag, expected, arrived);
    }
    if (!operation.mark.empty()) guarded([&] { hub_->copies->wait(rank_, operation.mark); });
    pool_.give_back(request);
  }

  void throw_if_aborted() {
    if (!hub_->aborted.load(std::memory_order_acquire)) [[likely]]
      return;
    withdraw();
    std::lock_guard lock(hub_->abort_mutex);
    throw PeerError(hub_->abort_text);
  }

  std::shared_ptr<Hub> hub_;
  int rank_;
  RankState& self_;
  SlotPool<PostedOperation> pool_;  // only this rank's thread acquires and releases slots
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_thread_transports(int ranks, cuda::DeviceCopies* copies) {
  PLUMBLINE_CHECK(ranks >= 1, std::to_string(ranks) + " ranks");
  auto hub = std::make_shared<Hub>(ranks, copies);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < ranks; ++rank) transports.push_back(std::make_unique<ThreadTransport>(hub, rank));
  return transports;
}

}  // namespace plumbline::transport

#include "runtime/transport/cuda/staged_transport.h"

#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "runtime/error.h"
#include "runtime/transport/arrival_transport.h"
#include "runtime/transport/cuda/pinned_memory.h"

namespace plumbline::transport::cuda {
namespace {

/// A message that is under way in pinned memory.
struct Staged {
  PinnedMemory* pinned;
  void* target;  ///< of a receive; null: a send
  size_t bytes;
};

class StagedTransport : public ArrivalTransport<Staged> {
 public:
  StagedTransport(Transport& inner, const Library& library, Stream compute, Clock::duration timeout)
      : ArrivalTransport(inner),
        library_(library),
        compute_(compute),
        timeout_(timeout),
        copied_(make_event(library_)) {}
  ~StagedTransport() override { library_.event_destroy(copied_); }

  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    if (bytes == 0 || !is_on_device(library_, data)) return inner_.isend(data, bytes, peer, tag);
    PinnedMemory& pinned = take(bytes);
    copy(pinned.get(), data, bytes);
    return expect(inner_.isend(pinned.get(), bytes, peer, tag), {&pinned, nullptr, bytes});
  }

  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    if (bytes == 0 || !is_on_device(library_, data)) return inner_.irecv(data, bytes, peer, tag);
    PinnedMemory& pinned = take(bytes);
    return expect(inner_.irecv(pinned.get(), bytes, peer, tag), {&pinned, data, bytes});
  }

 private:
  void arrive(const Staged& staged) override {
    if (staged.target != nullptr) copy(staged.target, staged.pinned->get(), staged.bytes);
    free_.push_back(staged.pinned);
  }

  /// The host waits for it, so that pinned memory can be used again.
  void copy(void* to, const void* from, size_t bytes) {
    guarded([&] {
      check(library_, library_.memcpy_async(to, from, bytes, CopyKind::Default, compute_), "cudaMemcpyAsync");
      check(library_, library_.event_record(copied_, compute_), "cudaEventRecord");
      const Deadline deadline = Deadline::after(timeout_);
      while (!has_passed(library_, copied_)) {
        if (deadline.passed())
          throw TimeoutError("rank " + std::to_string(rank()) + ": the copy of a message of " + std::to_string(bytes) +
                             " bytes between host and device is still in progress");
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }

  /// Withdrawn operations do not give theirs back: it lives as long as the transport.
  PinnedMemory& take(size_t bytes) {
    if (free_.empty()) free_.push_back(&all_.emplace_back());
    PinnedMemory& pinned = *free_.back();
    free_.pop_back();
    pinned.at_least(library_, bytes);
    return pinned;
  }

  const Library& library_;
  const Stream compute_;
  const Clock::duration timeout_;
  Event copied_ = nullptr;
  std::deque<PinnedMemory> all_;
  std::vector<PinnedMemory*> free_;
};

}  // namespace

std::unique_ptr<Transport> staged_transport(Transport& inner, const Library& library, Stream compute,
                                            Clock::duration timeout) {
  return std::make_unique<StagedTransport>(inner, library, compute, timeout);
}

}  // namespace plumbline::transport::cuda

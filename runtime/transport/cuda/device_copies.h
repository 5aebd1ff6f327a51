// DeviceCopies: how ranks that are threads of one process pass messages between memories of devices.
//
// Each rank has a compute stream, and each directed pair of ranks a stream for copies, so that both directions, and
// copies and computations, proceed at the same time. A copy begins behind the work that both ranks had given to their
// compute streams when they posted their operations: the sender's, which makes the message, and the receiver's, which
// may still use the memory. A compute stream then waits for the copy, and the host does not. So a rank may free or
// overwrite memory as soon as it has waited for its operation, if its work is on its compute stream, as the memory of
// LibTorch's allocator requires as well.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/transport/cuda/library.h"
#include "runtime/transport/cuda/mark.h"

namespace plumbline::transport::cuda {

/// Thread-safe.
class DeviceCopies {
 public:
  /// Gives the devices to the ranks in turn. Throws Error if there is none.
  DeviceCopies(Library library, int ranks);
  /// Every copy must have ended.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  const Library& library() const { return library_; }
  int device_of(int rank) const { return rank % devices_; }
  Stream compute_stream(int rank) const { return ranks_[rank].compute; }

  /// Whether messages in this memory need copy().
  bool covers(const void* memory) const { return is_on_device(library_, memory); }

  /// Behind the work on the compute stream of this rank, whose thread calls it.
  Mark mark(int rank);
  /// Copies from rank `from` to rank `to`, behind both marks; afterwards both are behind the copy.
  void copy(int from, int to, void* target, const void* source, size_t bytes, Mark& sent, Mark& received);
  /// The compute stream of this rank waits for the mark, which is empty afterwards.
  void wait(int rank, Mark& mark);
  /// wait(), whose errors are ignored: after one of a device, all calls fail.
  void drop(int rank, Mark& mark) noexcept;
  bool has_passed(const Mark& mark) const { return cuda::has_passed(library_, mark.event); }

 private:
  struct Rank {
    Stream compute = nullptr;
    std::vector<Stream> incoming;  // by sender; made when needed
    std::vector<Event> free;       // events that no mark has
  };

  Stream stream_between(int from, int to);
  Event take_event(int rank);
  void give_back(Mark& mark);

  const Library library_;
  int devices_ = 0;
  std::mutex mutex_;  // guards all but the compute streams
  std::vector<Rank> ranks_;
};

}  // namespace plumbline::transport::cuda

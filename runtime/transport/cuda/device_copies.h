// DeviceCopies: copies messages between the device memories of ranks that are threads of one process.
//
// Each rank has a compute stream, and each directed pair of ranks has a stream for copies, so that both directions, and
// copies and computations, proceed at the same time. When a rank posts a send or a receive, it marks the end of the
// work on its compute stream. The copy begins when both marks are passed: the sender's work has then computed the
// message, and the receiver's work no longer uses the target. When a rank waits for its operation, its compute stream
// waits for the copy; the host does not block. After that a rank may free or overwrite the memory in work on its
// compute stream, as LibTorch's allocator requires anyway.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/transport/cuda/library.h"
#include "runtime/transport/cuda/mark.h"

namespace plumbline::transport::cuda {

/// Owns the streams and the events. Thread-safe, but each Mark must be used by one thread at a time. All functions that
/// are not noexcept throw Error if a call of CUDA fails.
class DeviceCopies {
 public:
  /// Assigns devices to ranks in turn: rank R gets device R modulo the number of devices. Throws Error if there is no
  /// device.
  DeviceCopies(Library library, int ranks);
  /// All copies must have ended, and all marks must be empty.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  const Library& library() const { return library_; }
  int device_of(int rank) const { return rank % devices_; }
  Stream compute_stream(int rank) const { return ranks_[rank].compute; }

  /// Whether `memory` belongs to a device (also managed memory), so that its messages need copy().
  bool is_device_memory(const void* memory) const { return is_on_device(library_, memory); }

  /// Returns a mark behind all work that is on the rank's compute stream now. The rank's thread calls it.
  Mark mark(int rank);
  /// Puts a copy of `bytes` bytes from rank `from` to rank `to` onto their stream, behind both marks: `sent` by the
  /// sender, `received` by the receiver. Then makes both marks ones behind the copy. Does not block the host. Any
  /// thread may call it.
  void copy(int from, int to, void* target, const void* source, size_t bytes, Mark& sent, Mark& received);
  /// Makes the rank's compute stream wait for the mark, which must not be empty, and empties the mark. Does not block
  /// the host.
  void wait(int rank, Mark& mark);
  /// Does the same as wait() and ignores errors, since all calls fail after an error of a device. Does nothing with an
  /// empty mark.
  void drop(int rank, Mark& mark) noexcept;
  /// Whether the device has done all work before the mark, which must not be empty.
  bool has_passed(const Mark& mark) const { return cuda::has_passed(library_, mark.event); }

 private:
  struct Rank {
    Stream compute = nullptr;
    std::vector<Stream> incoming;  // for copies to this rank, by sender; made when needed
    std::vector<Event> free;       // events of this rank's device that no mark has
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

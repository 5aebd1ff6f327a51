#include "runtime/transport/cuda/device_copies.h"

#include <utility>

#include "runtime/error.h"

namespace plumbline::transport::cuda {
namespace {

/// The device of this thread, for what is made meanwhile.
class CurrentDevice {
 public:
  CurrentDevice(const Library& library, int device) : library_(library) {
    check(library, library.get_device(&before_), "cudaGetDevice");
    check(library, library.set_device(device), "cudaSetDevice");
  }
  ~CurrentDevice() { library_.set_device(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  const Library& library_;
  int before_ = 0;
};

}  // namespace

DeviceCopies::DeviceCopies(Library library, int ranks) : library_(std::move(library)), ranks_(ranks) {
  devices_ = device_count(library_);
  if (devices_ == 0) throw Error("--device cuda: there is no CUDA device on this machine");
  for (int rank = 0; rank < ranks; ++rank) {
    const CurrentDevice device(library_, device_of(rank));
    check(library_, library_.stream_create_with_flags(&ranks_[rank].compute, kStreamNonBlocking), "cudaStreamCreate");
    ranks_[rank].incoming.resize(ranks);
  }
}

DeviceCopies::~DeviceCopies() {
  for (const Rank& rank : ranks_) {
    for (Event event : rank.free) library_.event_destroy(event);
    for (Stream stream : rank.incoming)
      if (stream != nullptr) library_.stream_destroy(stream);
    library_.stream_destroy(rank.compute);
  }
}

Mark DeviceCopies::mark(int rank) {
  Event event = nullptr;
  {
    std::lock_guard lock(mutex_);
    event = take_event(rank);
  }
  Mark mark{event, rank};
  if (const CudaError result = library_.event_record(event, ranks_[rank].compute); result != CudaError::Success) {
    drop(rank, mark);
    check(library_, result, "cudaEventRecord");
  }
  return mark;
}

void DeviceCopies::copy(int from, int to, void* target, const void* source, size_t bytes, Mark& sent, Mark& received) {
  std::lock_guard lock(mutex_);
  const Stream stream = stream_between(from, to);
  for (Mark* mark : {&sent, &received}) {
    check(library_, library_.stream_wait_event(stream, mark->event, 0), "cudaStreamWaitEvent");
    give_back(*mark);
  }
  check(library_, library_.memcpy_async(target, source, bytes, CopyKind::Default, stream), "cudaMemcpyAsync");
  for (Mark* mark : {&sent, &received}) {
    *mark = {take_event(to), to};
    check(library_, library_.event_record(mark->event, stream), "cudaEventRecord");
  }
}

void DeviceCopies::wait(int rank, Mark& mark) {
  check(library_, library_.stream_wait_event(ranks_[rank].compute, mark.event, 0), "cudaStreamWaitEvent");
  std::lock_guard lock(mutex_);
  give_back(mark);
}

void DeviceCopies::drop(int rank, Mark& mark) noexcept {
  if (mark.empty()) return;
  library_.stream_wait_event(ranks_[rank].compute, mark.event, 0);
  std::lock_guard lock(mutex_);
  give_back(mark);
}

Stream DeviceCopies::stream_between(int from, int to) {
  Stream& stream = ranks_[to].incoming[from];
  if (stream == nullptr) {
    const CurrentDevice device(library_, device_of(to));
    check(library_, library_.stream_create_with_flags(&stream, kStreamNonBlocking), "cudaStreamCreate");
  }
  return stream;
}

/// The caller holds the lock.
Event DeviceCopies::take_event(int rank) {
  std::vector<Event>& free = ranks_[rank].free;
  if (free.empty()) {
    const CurrentDevice device(library_, device_of(rank));
    return make_event(library_);
  }
  const Event event = free.back();
  free.pop_back();
  return event;
}

/// The caller holds the lock.
void DeviceCopies::give_back(Mark& mark) {
  ranks_[mark.rank].free.push_back(mark.event);
  mark = Mark();
}

}  // namespace plumbline::transport::cuda

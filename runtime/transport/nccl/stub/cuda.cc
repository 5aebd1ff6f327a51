// The stub's functions of the CUDA runtime: streams, events, copies, and host memory that a device can use. There are
// more devices than ranks, so that each has its own.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/transport/nccl/stub/demand.h"
#include "runtime/transport/nccl/stub/exported.h"
#include "runtime/transport/nccl/stub/modes.h"

using plumbline::transport::cuda::CopyKind;
using plumbline::transport::cuda::CudaError;
using plumbline::transport::cuda::Event;
using plumbline::transport::cuda::MemoryType;
using plumbline::transport::cuda::PointerAttributes;
using plumbline::transport::cuda::Stream;
namespace stub = plumbline::transport::nccl::stub;

struct CUstream_st {
  std::shared_ptr<stub::StreamQueue> queue;
};

struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<stub::Signal> recorded;  // null before the first record, which counts as done

  std::shared_ptr<stub::Signal> signal() {
    std::lock_guard lock(mutex);
    return recorded;
  }
};

namespace {

struct HostMemory {
  std::mutex mutex;
  std::map<const char*, size_t> blocks;  // by their first byte

  bool holds(const char* memory, size_t bytes) {
    std::lock_guard lock(mutex);
    auto after = blocks.upper_bound(memory);
    return after != blocks.begin() && memory + bytes <= (--after)->first + after->second;
  }
};

HostMemory& host_memory() {
  static HostMemory& memory = *new HostMemory;  // for threads that outlive main()
  return memory;
}

}  // namespace

namespace plumbline::transport::nccl::stub {

std::shared_ptr<StreamQueue> queue_of(Stream stream) { return stream->queue; }

bool is_accessible(const void* memory, size_t bytes) {
  return !modes().apart || host_memory().holds(static_cast<const char*>(memory), bytes);
}

}  // namespace plumbline::transport::nccl::stub

#pragma GCC visibility push(default)
extern "C" {

const char* cudaGetErrorString(CudaError error) {
  return error == CudaError::Success ? "no error (stub of CUDA)" : "error (stub of CUDA)";
}

CudaError cudaGetDeviceCount(int* count) {
  *count = 4096;
  return CudaError::Success;
}

CudaError cudaGetDevice(int* device) {
  *device = 0;
  return CudaError::Success;
}

CudaError cudaSetDevice(int) { return CudaError::Success; }

CudaError cudaStreamCreateWithFlags(Stream* stream, unsigned int) {
  *stream = new CUstream_st{stub::StreamQueue::start()};
  return CudaError::Success;
}

/// As in CUDA, work that is on the stream still ends.
CudaError cudaStreamDestroy(Stream stream) {
  stream->queue->close();
  delete stream;
  return CudaError::Success;
}

CudaError cudaStreamWaitEvent(Stream stream, Event event, unsigned int) {
  if (const auto signal = event->signal(); signal != nullptr && !signal->is_set())
    stream->queue->push({[signal] { signal->wait(); }, [signal] { signal->query(); }});
  return CudaError::Success;
}

CudaError cudaEventCreateWithFlags(Event* event, unsigned int) {
  *event = new CUevent_st;
  return CudaError::Success;
}

CudaError cudaEventDestroy(Event event) {
  delete event;
  return CudaError::Success;
}

CudaError cudaEventRecord(Event event, Stream stream) {
  auto signal = stream->queue->record();
  std::lock_guard lock(event->mutex);
  event->recorded = std::move(signal);
  return CudaError::Success;
}

CudaError cudaEventQuery(Event event) {
  stub::release_deferred_sends();
  const auto signal = event->signal();
  return signal == nullptr || signal->query() ? CudaError::Success : CudaError::NotReady;
}

/// With `poison` the target holds 0xff bytes from the moment when the stream comes to the copy; with `late` the copy
/// then waits until the host queries an event behind it.
CudaError cudaMemcpyAsync(void* to, const void* from, size_t bytes, CopyKind, Stream stream) {
  const std::shared_ptr<stub::Demand> demand = stub::modes().late ? std::make_shared<stub::Demand>() : nullptr;
  stub::StreamQueue::Task task;
  task.run = [=, poisons = stub::modes().poison] {
    if (poisons) std::memset(to, 0xff, bytes);
    if (demand != nullptr) demand->wait();
    std::memcpy(to, from, bytes);
  };
  if (demand != nullptr) task.on_query = [demand] { demand->ask(); };
  stream->queue->push(std::move(task));
  return CudaError::Success;
}

CudaError cudaLaunchHostFunc(Stream stream, void (*run)(void*), void* argument) {
  stream->queue->push({[=] { run(argument); }});
  return CudaError::Success;
}

CudaError cudaHostAlloc(void** memory, size_t bytes, unsigned int) {
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return CudaError::InvalidValue;
  std::lock_guard lock(host_memory().mutex);
  host_memory().blocks[static_cast<const char*>(*memory)] = bytes;
  return CudaError::Success;
}

CudaError cudaFreeHost(void* memory) {
  {
    std::lock_guard lock(host_memory().mutex);
    host_memory().blocks.erase(static_cast<const char*>(memory));
  }
  std::free(memory);
  return CudaError::Success;
}

CudaError cudaPointerGetAttributes(PointerAttributes* attributes, const void* memory) {
  *attributes = {};
  const bool usable = stub::is_accessible(memory, 1);
  attributes->type = usable ? MemoryType::Managed : MemoryType::Unregistered;
  attributes->devicePointer = usable ? const_cast<void*>(memory) : nullptr;
  return CudaError::Success;
}

}  // extern "C"
#pragma GCC visibility pop

// The stub's functions of the CUDA runtime: streams, events, and host memory that a device can use. There are more
// devices than ranks, so that each has its own.
#include <cstdlib>
#include <map>
#include <mutex>

#include "runtime/transport/nccl/stub/exported.h"
#include "runtime/transport/nccl/stub/modes.h"

using plumbline::transport::nccl::CudaError;
using plumbline::transport::nccl::Event;
using plumbline::transport::nccl::MemoryType;
using plumbline::transport::nccl::PointerAttributes;
using plumbline::transport::nccl::Stream;
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
    stream->queue->push({[signal] { signal->wait(); }, [signal] { signal->ask(); }});
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
  stub::host_asks();
  const auto signal = event->signal();
  return signal == nullptr || signal->ask() ? CudaError::Success : CudaError::NotReady;
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

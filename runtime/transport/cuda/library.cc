#include "runtime/transport/cuda/library.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "runtime/error.h"

namespace plumbline::transport::cuda {
namespace {

SharedLibrary find_runtime(const std::string& user) {
  const std::string advice = user + " needs the CUDA runtime: set PLUMBLINE_CUDART to the path of libcudart.so";
  if (const char* path = std::getenv("PLUMBLINE_CUDART")) return {path, advice};
  // The one that LibTorch has loaded comes first.
  for (const bool only_loaded : {true, false})
    for (const char* name : {"libcudart.so.13", "libcudart.so.12"})
      if (std::optional<SharedLibrary> found = SharedLibrary::find(name, only_loaded)) return *found;
  return {"libcudart.so", advice};
}

}  // namespace

Library library_from(const SharedLibrary& file) {
  Library library;
  const auto get = [&](auto& to, const char* symbol) { file.get(to, symbol, "take CUDA 12 or 13"); };
  get(library.cuda_get_error_string, "cudaGetErrorString");
  get(library.get_device_count, "cudaGetDeviceCount");
  get(library.get_device, "cudaGetDevice");
  get(library.set_device, "cudaSetDevice");
  get(library.stream_create_with_flags, "cudaStreamCreateWithFlags");
  get(library.stream_destroy, "cudaStreamDestroy");
  get(library.stream_wait_event, "cudaStreamWaitEvent");
  get(library.event_create_with_flags, "cudaEventCreateWithFlags");
  get(library.event_destroy, "cudaEventDestroy");
  get(library.event_record, "cudaEventRecord");
  get(library.event_query, "cudaEventQuery");
  get(library.host_alloc, "cudaHostAlloc");
  get(library.free_host, "cudaFreeHost");
  get(library.pointer_get_attributes, "cudaPointerGetAttributes");
  get(library.memcpy_async, "cudaMemcpyAsync");
  get(library.launch_host_func, "cudaLaunchHostFunc");
  library.cuda_path = file.path_of("cudaStreamCreateWithFlags");
  return library;
}

Library load_library(const std::string& user) { return library_from(find_runtime(user)); }

int device_count(const Library& library) {
  int devices = 0;
  const CudaError result = library.get_device_count(&devices);
  if (result == CudaError::NoDevice || result == CudaError::InsufficientDriver) return 0;
  check(library, result, "cudaGetDeviceCount");
  return devices;
}

bool is_on_device(const Library& library, const void* memory) {
  PointerAttributes attributes;
  return library.pointer_get_attributes(&attributes, memory) == CudaError::Success &&
         (attributes.type == MemoryType::Device || attributes.type == MemoryType::Managed);
}

Event make_event(const Library& library) {
  Event event = nullptr;
  check(library, library.event_create_with_flags(&event, kEventDisableTiming), "cudaEventCreate");
  return event;
}

bool has_passed(const Library& library, Event event) {
  const CudaError state = library.event_query(event);
  if (state != CudaError::NotReady) check(library, state, "cudaEventQuery");
  return state == CudaError::Success;
}

Library with_slow_copies(Library library) {
  library.memcpy_async = [copy = library.memcpy_async, launch = library.launch_host_func](
                             void* to, const void* from, size_t bytes, CopyKind kind, Stream stream) {
    const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
    const CudaError launched = launch(stream, sleep, nullptr);
    return launched == CudaError::Success ? copy(to, from, bytes, kind, stream) : launched;
  };
  return library;
}

void check(const Library& library, CudaError result, const char* call) {
  if (result != CudaError::Success) throw Error(std::string(call) + ": " + library.cuda_get_error_string(result));
}

}  // namespace plumbline::transport::cuda

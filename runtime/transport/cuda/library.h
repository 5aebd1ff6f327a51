// Library: the CUDA runtime, loaded at run time.
#pragma once

#include <functional>
#include <string>

#include "runtime/transport/cuda/abi.h"
#include "runtime/transport/cuda/shared_library.h"

namespace plumbline::transport::cuda {

/// The functions are those of the library, without the prefix cuda. Tests and mutants replace single ones in a copy.
struct Library {
  std::string cuda_path;  ///< of the file

  std::function<function::GetErrorString> cuda_get_error_string;
  std::function<function::GetDeviceCount> get_device_count;
  std::function<function::GetDevice> get_device;
  std::function<function::SetDevice> set_device;
  std::function<function::StreamCreateWithFlags> stream_create_with_flags;
  std::function<function::StreamDestroy> stream_destroy;
  std::function<function::StreamWaitEvent> stream_wait_event;
  std::function<function::EventCreateWithFlags> event_create_with_flags;
  std::function<function::EventDestroy> event_destroy;
  std::function<function::EventRecord> event_record;
  std::function<function::EventQuery> event_query;
  std::function<function::HostAlloc> host_alloc;
  std::function<function::FreeHost> free_host;
  std::function<function::PointerGetAttributes> pointer_get_attributes;
  std::function<function::MemcpyAsync> memcpy_async;
  std::function<function::LaunchHostFunc> launch_host_func;
};

/// Loads the file that PLUMBLINE_CUDART names, else libcudart.so.13 or .12, preferably one that LibTorch has already
/// loaded. Throws Error, with a remedy, if it is absent or lacks a function. The text names `user` as what needs it:
/// "NCCL".
Library load_library(const std::string& user);
/// The same from a library that also has other functions, as the stub of NCCL does.
Library library_from(const SharedLibrary& file);

/// The number of devices; 0 also without a driver that fits. Throws Error as check() does.
int device_count(const Library& library);

/// Whether the memory is a device's, or managed.
bool is_on_device(const Library& library, const void* memory);

/// A new event without timing. The caller destroys it.
Event make_event(const Library& library);

/// Whether the work before the event has ended. Throws Error as check(), for an error of the device too.
bool has_passed(const Library& library, Event event);

/// The library with a memcpy_async that begins each copy 2 ms late, so that a missing wait shows every time.
Library with_slow_copies(Library library);

/// Throws Error, with the call's name, unless the result is Success.
void check(const Library& library, CudaError result, const char* call);

}  // namespace plumbline::transport::cuda

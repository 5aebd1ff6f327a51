// The parts of the CUDA runtime's binary interface that the transports use, declared here so that the toolkit is not
// needed to build. The library is loaded at run time (library.h). nccl/abi_check.cc compares the declarations with the
// header where a build finds it.
//
// Facts from cuda_runtime_api.h of CUDA 13. Those of CUDA 12 are equal, but for PointerAttributes, which end before
// `reserved`.
#pragma once

#include <cstddef>

// Named as the CUDA runtime names them.
struct CUstream_st;
struct CUevent_st;

namespace plumbline::transport::cuda {

using Stream = CUstream_st*;
using Event = CUevent_st*;

enum class CudaError : int { Success = 0, InvalidValue = 1, InsufficientDriver = 35, NoDevice = 100, NotReady = 600 };

inline constexpr unsigned int kStreamNonBlocking = 1;
inline constexpr unsigned int kEventDisableTiming = 2;
inline constexpr unsigned int kHostAllocDefault = 0;

enum class MemoryType : int { Unregistered = 0, Host = 1, Device = 2, Managed = 3 };

struct PointerAttributes {
  MemoryType type = MemoryType::Unregistered;
  int device = 0;
  void* devicePointer = nullptr;
  void* hostPointer = nullptr;
  long reserved[8] = {};
};

enum class CopyKind : int { Default = 4 };  ///< the addresses tell the direction

// The functions, named as in the library.
namespace function {
using GetErrorString = const char*(CudaError error);
using GetDeviceCount = CudaError(int* count);
using GetDevice = CudaError(int* device);
using SetDevice = CudaError(int device);
using StreamCreateWithFlags = CudaError(Stream* stream, unsigned int flags);
using StreamDestroy = CudaError(Stream stream);
using StreamWaitEvent = CudaError(Stream stream, Event event, unsigned int flags);
using EventCreateWithFlags = CudaError(Event* event, unsigned int flags);
using EventDestroy = CudaError(Event event);
using EventRecord = CudaError(Event event, Stream stream);
using EventQuery = CudaError(Event event);
using HostAlloc = CudaError(void** memory, size_t bytes, unsigned int flags);
using FreeHost = CudaError(void* memory);
using PointerGetAttributes = CudaError(PointerAttributes* attributes, const void* memory);
using LaunchHostFunc = CudaError(Stream stream, void (*run)(void*), void* argument);
using MemcpyAsync = CudaError(void* to, const void* from, size_t bytes, CopyKind kind, Stream stream);
}  // namespace function

}  // namespace plumbline::transport::cuda

// The parts of NCCL's and the CUDA runtime's binary interfaces that the transport uses, declared here so that neither
// toolkit is needed to build. The libraries are loaded at run time (library.h). abi_check.cc compares the declarations
// with the headers of both where a build finds them.
//
// Facts from nccl.h of NCCL 2.28 (ncclConfig_v22800, which later versions accept) and cuda_runtime_api.h of CUDA 13.
#pragma once

#include <climits>
#include <cstddef>

// Named as nccl.h and the CUDA runtime name them.
struct ncclComm;
struct CUstream_st;
struct CUevent_st;

namespace plumbline::transport::nccl {

using Communicator = ncclComm*;
using Stream = CUstream_st*;
using Event = CUevent_st*;

enum class Result : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

enum class CudaError : int { Success = 0, InvalidValue = 1, NotReady = 600 };

enum class DataType : int { Uint8 = 1 };

/// The smallest version whose configuration is declared here.
inline constexpr int kLeastVersion = 22800;

struct UniqueId {
  char internal[128];
};

struct Config {
  static constexpr int kUndefined = INT_MIN;

  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = kLeastVersion;
  int blocking = kUndefined;
  int cgaClusterSize = kUndefined;
  int minCTAs = kUndefined;
  int maxCTAs = kUndefined;
  const char* netName = nullptr;
  int splitShare = kUndefined;
  int trafficClass = kUndefined;
  const char* commName = nullptr;
  int collnetEnable = kUndefined;
  int CTAPolicy = kUndefined;
  int shrinkShare = kUndefined;
  int nvlsCTAs = kUndefined;
  int nChannelsPerNetPeer = kUndefined;
  int nvlinkCentricSched = kUndefined;
};

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

// The functions, named as in the libraries.
namespace function {
using GetVersion = Result(int* version);
using GetErrorString = const char*(Result result);
using GetLastError = const char*(Communicator comm);
using GetUniqueId = Result(UniqueId* id);
using CommInitRankConfig = Result(Communicator* comm, int ranks, UniqueId id, int rank, Config* config);
using CommGetAsyncError = Result(Communicator comm, Result* state);
using CommFinalize = Result(Communicator comm);
using CommDestroy = Result(Communicator comm);
using CommAbort = Result(Communicator comm);
using Send = Result(const void* data, size_t count, DataType type, int peer, Communicator comm, Stream stream);
using Recv = Result(void* data, size_t count, DataType type, int peer, Communicator comm, Stream stream);

using CudaGetErrorString = const char*(CudaError error);
using GetDeviceCount = CudaError(int* count);
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
}  // namespace function

}  // namespace plumbline::transport::nccl

// The parts of NCCL's binary interface that the transport uses, declared here so that NCCL is not needed to build. The
// library is loaded at run time (library.h). abi_check.cc compares the declarations with the header where a build finds
// it.
//
// Facts from nccl.h of NCCL 2.28 (ncclConfig_v22800, which later versions accept).
#pragma once

#include <climits>
#include <cstddef>

#include "runtime/transport/cuda/abi.h"

// Named as nccl.h names it.
struct ncclComm;

namespace plumbline::transport::nccl {

using Communicator = ncclComm*;
using cuda::CudaError;
using cuda::Event;
using cuda::Stream;

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

enum class DataType : int { Uint8 = 1 };

/// The oldest supported NCCL, as ncclGetVersion() gives it: 2.28.0. Its configuration is declared here.
inline constexpr int kMinVersion = 22800;

struct UniqueId {
  char internal[128];
};

struct Config {
  static constexpr int kUndefined = INT_MIN;

  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = kMinVersion;
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

// The functions, named as in the library.
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
}  // namespace function

}  // namespace plumbline::transport::nccl

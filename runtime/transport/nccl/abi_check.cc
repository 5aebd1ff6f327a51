// Compares abi.h and library.h with the headers of NCCL and CUDA. Compiled only where both are found (-Dcuda), and new
// enough.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <type_traits>

#include "runtime/transport/nccl/library.h"

namespace plumbline::transport::nccl {
namespace {

/// Whether two types are passed alike: both pointers, both integers or enumerations of one size, both structures of one
/// size.
template <typename A, typename B>
constexpr bool passed_alike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  else
    return sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B> &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename R, typename... Args, typename TheirR, typename... TheirArgs>
  requires(sizeof...(Args) == sizeof...(TheirArgs))
struct Alike<std::function<R(Args...)>, TheirR (*)(TheirArgs...)>
    : std::bool_constant<passed_alike<R, TheirR>() && (passed_alike<Args, TheirArgs>() && ...)> {};

#define PLUMBLINE_ALIKE(member, theirs) static_assert(Alike<decltype(Library::member), decltype(&theirs)>::value)
PLUMBLINE_ALIKE(get_version, ncclGetVersion);
PLUMBLINE_ALIKE(get_error_string, ncclGetErrorString);
PLUMBLINE_ALIKE(get_last_error, ncclGetLastError);
PLUMBLINE_ALIKE(get_unique_id, ncclGetUniqueId);
PLUMBLINE_ALIKE(comm_init_rank_config, ncclCommInitRankConfig);
PLUMBLINE_ALIKE(comm_get_async_error, ncclCommGetAsyncError);
PLUMBLINE_ALIKE(comm_finalize, ncclCommFinalize);
PLUMBLINE_ALIKE(comm_destroy, ncclCommDestroy);
PLUMBLINE_ALIKE(comm_abort, ncclCommAbort);
PLUMBLINE_ALIKE(send, ncclSend);
PLUMBLINE_ALIKE(recv, ncclRecv);
PLUMBLINE_ALIKE(cuda_get_error_string, cudaGetErrorString);
PLUMBLINE_ALIKE(get_device_count, cudaGetDeviceCount);
PLUMBLINE_ALIKE(get_device, cudaGetDevice);
PLUMBLINE_ALIKE(set_device, cudaSetDevice);
PLUMBLINE_ALIKE(stream_create_with_flags, cudaStreamCreateWithFlags);
PLUMBLINE_ALIKE(stream_destroy, cudaStreamDestroy);
PLUMBLINE_ALIKE(stream_wait_event, cudaStreamWaitEvent);
PLUMBLINE_ALIKE(event_create_with_flags, cudaEventCreateWithFlags);
PLUMBLINE_ALIKE(event_destroy, cudaEventDestroy);
PLUMBLINE_ALIKE(event_query, cudaEventQuery);
PLUMBLINE_ALIKE(memcpy_async, cudaMemcpyAsync);
PLUMBLINE_ALIKE(launch_host_func, cudaLaunchHostFunc);
PLUMBLINE_ALIKE(free_host, cudaFreeHost);
PLUMBLINE_ALIKE(pointer_get_attributes, cudaPointerGetAttributes);
#undef PLUMBLINE_ALIKE
// Overloaded or a template in cuda_runtime.h, which nccl.h includes.
template <typename Theirs>
constexpr Theirs chosen(Theirs function) {
  return function;
}
static_assert(Alike<decltype(Library::event_record),
                    decltype(chosen<cudaError_t (*)(cudaEvent_t, cudaStream_t)>(&cudaEventRecord))>::value);
static_assert(Alike<decltype(Library::host_alloc),
                    decltype(chosen<cudaError_t (*)(void**, size_t, unsigned int)>(&cudaHostAlloc))>::value);

#define PLUMBLINE_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
PLUMBLINE_VALUE(Result::Success, ncclSuccess);
PLUMBLINE_VALUE(Result::UnhandledCudaError, ncclUnhandledCudaError);
PLUMBLINE_VALUE(Result::SystemError, ncclSystemError);
PLUMBLINE_VALUE(Result::InternalError, ncclInternalError);
PLUMBLINE_VALUE(Result::InvalidArgument, ncclInvalidArgument);
PLUMBLINE_VALUE(Result::InvalidUsage, ncclInvalidUsage);
PLUMBLINE_VALUE(Result::RemoteError, ncclRemoteError);
PLUMBLINE_VALUE(Result::InProgress, ncclInProgress);
PLUMBLINE_VALUE(DataType::Uint8, ncclUint8);
PLUMBLINE_VALUE(CudaError::Success, cudaSuccess);
PLUMBLINE_VALUE(CudaError::InvalidValue, cudaErrorInvalidValue);
PLUMBLINE_VALUE(CudaError::InsufficientDriver, cudaErrorInsufficientDriver);
PLUMBLINE_VALUE(CudaError::NoDevice, cudaErrorNoDevice);
PLUMBLINE_VALUE(CudaError::NotReady, cudaErrorNotReady);
PLUMBLINE_VALUE(cuda::kStreamNonBlocking, cudaStreamNonBlocking);
PLUMBLINE_VALUE(cuda::kEventDisableTiming, cudaEventDisableTiming);
PLUMBLINE_VALUE(cuda::kHostAllocDefault, cudaHostAllocDefault);
PLUMBLINE_VALUE(cuda::MemoryType::Unregistered, cudaMemoryTypeUnregistered);
PLUMBLINE_VALUE(cuda::MemoryType::Host, cudaMemoryTypeHost);
PLUMBLINE_VALUE(cuda::MemoryType::Device, cudaMemoryTypeDevice);
PLUMBLINE_VALUE(cuda::MemoryType::Managed, cudaMemoryTypeManaged);
PLUMBLINE_VALUE(cuda::CopyKind::Default, cudaMemcpyDefault);
PLUMBLINE_VALUE(Config::kUndefined, NCCL_CONFIG_UNDEF_INT);
#undef PLUMBLINE_VALUE

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
// CUDA 13 appended members; the library writes into ours.
static_assert(sizeof(cuda::PointerAttributes) >= sizeof(cudaPointerAttributes));
static_assert(offsetof(cuda::PointerAttributes, type) == offsetof(cudaPointerAttributes, type));
static_assert(offsetof(cuda::PointerAttributes, devicePointer) == offsetof(cudaPointerAttributes, devicePointer));
// A later version appends members.
static_assert(sizeof(Config) <= sizeof(ncclConfig_t));
#define PLUMBLINE_OFFSET(member) static_assert(offsetof(Config, member) == offsetof(ncclConfig_t, member))
PLUMBLINE_OFFSET(size);
PLUMBLINE_OFFSET(magic);
PLUMBLINE_OFFSET(version);
PLUMBLINE_OFFSET(blocking);
PLUMBLINE_OFFSET(netName);
PLUMBLINE_OFFSET(commName);
PLUMBLINE_OFFSET(nvlinkCentricSched);
#undef PLUMBLINE_OFFSET

}  // namespace
}  // namespace plumbline::transport::nccl

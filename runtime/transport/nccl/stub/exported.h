// The functions that the two halves of the stub need of each other: nccl.cc has the functions of NCCL, cuda.cc those of
// the CUDA runtime. All are thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/transport/nccl/abi.h"
#include "runtime/transport/nccl/stub/stream.h"

namespace plumbline::transport::nccl::stub {

/// Returns the queue of `stream`, which must be one of cudaStreamCreateWithFlags that was not destroyed. The queue may
/// be kept longer than the stream. Defined in cuda.cc for nccl.cc.
std::shared_ptr<StreamQueue> queue_of(Stream stream);

/// Lets the sends that the calling thread has posted read their memory, which they put off in the mode `late`. Called
/// by cudaEventQuery: only a query tells the host that a send has ended. Does nothing in other modes. Defined in
/// nccl.cc for cuda.cc.
void release_deferred_sends();

/// Whether operations may use the `bytes` bytes at `memory`: always, except in the mode `apart`, in which they must lie
/// in one block of cudaHostAlloc. Defined in cuda.cc for both halves.
bool is_accessible(const void* memory, size_t bytes);

}  // namespace plumbline::transport::nccl::stub

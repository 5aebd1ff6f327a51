// The handles of the stub's exported functions, and what NCCL's part needs of CUDA's.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/transport/nccl/abi.h"
#include "runtime/transport/nccl/stub/stream.h"

namespace plumbline::transport::nccl::stub {

std::shared_ptr<StreamQueue> queue_of(Stream stream);

/// Call for each question of the host: what its thread has posted so far may read its memory.
void host_asks();

/// Whether operations may use this memory: all of it, or with `apart` that of cudaHostAlloc.
bool is_accessible(const void* memory, size_t bytes);

}  // namespace plumbline::transport::nccl::stub

// The device of a rank, for the calls of this process or thread.
#pragma once

#include "runtime/transport/nccl/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::nccl {

/// Throws Error, with the call's name, unless the result is Success.
void check_cuda(const Library& library, CudaError result, const char* call);

/// Gives the ranks of a machine its devices in turn. All ranks call it. Throws Error as make_nccl_transport() does.
void choose_device(const Library& library, Transport& control, const Deadline& deadline);

}  // namespace plumbline::transport::nccl

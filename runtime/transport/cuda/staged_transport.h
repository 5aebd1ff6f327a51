// A transport that passes messages in memory of a device through pinned memory of the host, for a medium that knows
// host memory only, such as MPI.
#pragma once

#include <memory>

#include "runtime/transport/cuda/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::cuda {

/// Decorates `inner`; both references must outlive the result. A send is copied to the host, behind the work on
/// `compute`, before isend() returns: the host waits for it. A receive is copied to the device when test() or wait()
/// finds that it has arrived. Either throws TimeoutError if the copy, which waits for the work before it, has not ended
/// after `timeout`. Messages in host memory pass unchanged.
std::unique_ptr<Transport> staged_transport(Transport& inner, const Library& library, Stream compute,
                                            Clock::duration timeout);

}  // namespace plumbline::transport::cuda

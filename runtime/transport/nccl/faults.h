// Faults that a program on streams may have, injected from outside: by replaced functions of NCCL and CUDA, or by a
// transport around another one. For tests and for mutants (conformance/mutants).
//
// Each function that takes a Library replaces one or two of its functions and returns it. The replacements keep state
// without a lock: each rank must replace functions in a Library of its own, and use it on one thread.
// with_swapped_sends() and both transports copy messages on the host, so they need memory that the host can access, as
// with the stub. The transports pass on messages of 0 bytes, and those with negative tags, unchanged.
#pragma once

#include <functional>
#include <memory>

#include "runtime/transport/nccl/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::nccl {

/// Called whenever a fault changed something, on the thread of the changed call.
using Happened = std::function<void()>;

/// cudaStreamWaitEvent does nothing: no stream waits for an event, so the compute stream takes a receive for complete
/// that was only posted. Needs with_private_receive_buffers() around the transport.
Library without_event_waits(Library library, Happened happened);

/// All streams that the rank creates are one, except the first, which is the transport's compute stream. So all edges
/// share a stream, and a send that waits for its receive holds back the rank's receives. The shared stream is destroyed
/// with its last user.
Library with_one_stream(Library library, Happened happened);

/// Every receive of more than 4 bytes is posted with 4 bytes less than its send has.
Library with_short_receives(Library library, Happened happened);

/// On each communicator the second and the third send change places; the first one serves to connect the ranks. The
/// second send is copied and held until the third is posted; without a third it is never sent.
Library with_swapped_sends(Library library, Happened happened);

/// No fault: returns a transport that receives each message into a buffer of its own, and copies it into the caller's
/// memory when a test() or wait() finds the receive complete. The buffers live as long as the transport, so a receive
/// that was taken for complete too early cannot write to freed memory. `Happened` is never called: the parameter makes
/// the type that of with_overwritten_sends(). Destroy it after `inner`, which may write to the buffers until then.
std::unique_ptr<Transport> with_private_receive_buffers(Transport& inner, Happened);

/// Returns a transport that sends a copy of each message and overwrites that copy with 0xff before isend() returns, as
/// if the caller reused the memory at once. Destroy it after `inner`, which may read the copies until then.
std::unique_ptr<Transport> with_overwritten_sends(Transport& inner, Happened happened);

}  // namespace plumbline::transport::nccl

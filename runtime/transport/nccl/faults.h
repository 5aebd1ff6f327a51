// Faults that a program on streams may have, made from outside: by functions of the library that do less than they
// should, or by a transport that mistreats its memory. For tests and for mutants (conformance/mutants).
#pragma once

#include <functional>
#include <memory>

#include "runtime/transport/nccl/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::nccl {

/// Called whenever a fault changed something.
using Happened = std::function<void()>;

/// No stream waits for an event: a receive counts as complete for the compute stream when it was only posted. Needs
/// with_kept_receives() around the transport.
Library without_event_waits(Library library, Happened happened);

/// All edges of the rank share one stream: a send that waits for its receive holds back the receives.
Library with_one_stream(Library library, Happened happened);

/// Every receive of more than 4 bytes is 4 bytes smaller than its send.
Library with_short_receives(Library library, Happened happened);

/// On each communicator the second and third send (the first serves to connect) are issued in the other order.
Library with_swapped_sends(Library library, Happened happened);

/// Not a fault: a transport that receives into memory of its own, which lives as long as it, so that a receive that is
/// read too early does not also write to memory that was freed.
/// It may be destroyed after `inner`, and must be.
std::unique_ptr<Transport> with_kept_receives(Transport& inner, Happened);

/// A transport whose sends lose their memory at once: it is overwritten when isend() returns. It must be destroyed
/// after `inner`, which may read that memory until then.
std::unique_ptr<Transport> with_overwritten_sends(Transport& inner, Happened happened);

}  // namespace plumbline::transport::nccl

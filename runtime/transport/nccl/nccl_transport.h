// Ranks whose tensors travel over NCCL. Only the messages of a step on which all ranks agreed beforehand (Traffic) do;
// all others (agreement, collectives, sums of gradients, messages of a rank to itself) go over a control transport.
//
// NCCL has no tags: it matches the k-th send with the k-th receive between two ranks. So each directed edge, from a
// sending to a receiving rank, has a communicator of two ranks and a stream on either side. Sends are issued in the
// agreed order, in which they must be posted. Receives are issued in the sender's order, whatever the order in which
// they are posted: one that the sender sends earlier, but that is not posted yet, is staged.
//
// Memory: NCCL accesses memory of a device and pinned memory of the host directly. A message in pageable memory of the
// host is staged: isend() copies it to pinned memory of the transport first. A staged receive arrives in such memory,
// and the wait() or test() that completes it copies it to the caller's.
//
// Streams: an operation on an edge begins after the work that is on the compute stream by then. A receive is complete
// for the compute stream, which waits for its event; wait() then also waits for the compute stream, since the kernels
// of a CPU run on the host, and so that a message that does not come is found at its deadline, by its receiver. A send
// is complete when its own event is: until then the caller keeps its memory.
//
// The host does not block in CUDA or NCCL. wait() polls, sleeps between polls, and progresses the control transport
// meanwhile. If the memory of a staged receive is a device's, the wait() or test() that completes it puts the copy on
// the compute stream and polls likewise until the copy has ended. So test() may block there until the work on the
// compute stream has ended; after NcclOptions::timeout either throws TimeoutError, and the copy may still happen.
//
// After an error or withdraw() in the middle of a step the rank aborts all its communicators, since NCCL withdraws no
// single operation; from then on a message over NCCL throws Error.
//
// Facts: NCCL's user guide (point-to-point order, non-blocking communicators, abort); one communicator for each
// direction, made in rounds and used once before the first step, as torch.distributed.pipelining of PyTorch 2.15 does.
#pragma once

#include <memory>

#include "runtime/transport/nccl/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::nccl {

struct NcclOptions {
  /// The limit for making one communicator, whatever the deadline of agree_on_traffic(), for NCCL to take an operation,
  /// and for the copy of a staged receive to a device.
  Clock::duration timeout = std::chrono::seconds(60);
  /// Each message is preceded by a header with its tag, its size and its number in the agreed order. The receiver
  /// throws Error if the header differs from what it expects. Must be equal on all ranks: a header is a message too.
  bool headers = false;
  /// The stream on which the caller computes, if its tensors are on a device; must outlive the transport. Null is not
  /// CUDA's default stream: the transport makes a stream of its own, for a caller whose kernels run on the host.
  Stream compute = nullptr;
};

/// Decorates `control`, which must outlive the result; all ranks call it together. Selects this rank's device. Throws
/// Error if there is none, or if ranks would have to share one and NCCL does not support it (before 2.30, or without
/// NCCL_MULTI_RANK_GPU_ENABLE=1). With NCCL_HOSTID, which makes ranks of one machine look like those of several, NCCL
/// itself decides.
std::unique_ptr<Transport> make_nccl_transport(Library library, Transport& control, const NcclOptions& options = {});

}  // namespace plumbline::transport::nccl

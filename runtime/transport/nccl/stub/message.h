// A send or a receive of the stub, from ncclSend or ncclRecv to its end on its stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/transport/nccl/stub/demand.h"
#include "runtime/transport/nccl/stub/shared_lanes.h"

namespace plumbline::transport::nccl::stub {

struct Message {
  bool is_send = false;
  void* memory = nullptr;  // only read for a send
  uint64_t bytes = 0;
  int rank = 0;                    // that posted it; the other rank is 1 - rank
  uint64_t number = 0;             // of the rank's operations in this direction, from 0
  int stream = 0;                  // the number of the stream in the rank's process
  std::shared_ptr<Demand> demand;  // null unless the mode is `late`

  int lane() const { return is_send ? rank : 1 - rank; }
  Position& mine(SharedLanes& lanes) const {
    return is_send ? lanes.lanes[lane()].sender : lanes.lanes[lane()].receiver;
  }
  Position& other(SharedLanes& lanes) const {
    return is_send ? lanes.lanes[lane()].receiver : lanes.lanes[lane()].sender;
  }
};

/// "send 3 of rank 0 to rank 1, 64 bytes, stream 2".
std::string describe(const Message& message);

/// Runs at the head of the stream and blocks until the message is transferred. After an error of either rank (different
/// sizes, which it finds) it blocks, as a kernel would, until the communicator is aborted. `poisoned`: the memory was
/// filled when the receive was posted.
void transfer(const Message& message, SharedLanes& lanes, bool poisoned);

/// Fills the memory of a receive.
void poison(const Message& message);

/// What both ends of both directions are doing, in one line; empty if nothing.
std::string positions(SharedLanes& lanes);

}  // namespace plumbline::transport::nccl::stub

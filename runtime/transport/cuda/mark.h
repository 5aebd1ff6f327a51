// Mark: a place in the work of a stream, as a CUDA event that was recorded there.
#pragma once

#include "runtime/transport/cuda/abi.h"

namespace plumbline::transport::cuda {

/// The event is on loan from a DeviceCopies, which owns it. A mark that is not empty must be given back by
/// DeviceCopies::wait() or drop(); a copy of a mark is the same loan.
struct Mark {
  Event event = nullptr;  ///< null: empty
  int rank = 0;           ///< the rank on whose device the event was created

  bool empty() const { return event == nullptr; }
};

}  // namespace plumbline::transport::cuda

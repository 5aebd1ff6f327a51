// Mark: a place in the work of a stream.
#pragma once

#include "runtime/transport/cuda/abi.h"

namespace plumbline::transport::cuda {

struct Mark {
  Event event = nullptr;
  int rank = 0;  ///< on whose device the event is

  bool empty() const { return event == nullptr; }
};

}  // namespace plumbline::transport::cuda

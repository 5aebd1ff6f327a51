// Chooses the CUDA device of a rank that is a process.
#pragma once

#include "runtime/transport/cuda/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::cuda {

struct DeviceOfRank {
  int device = 0;   ///< its number on this machine
  int devices = 0;  ///< the number of devices of this machine
  int ranks = 0;    ///< the number of ranks of the job on this machine
};

/// Makes a device the current one of this thread; the ranks of a machine take its devices in turn. All ranks of
/// `control` call it together. Throws Error if there is no device; the text begins with `user`, such as "--device
/// cuda".
DeviceOfRank choose_device(const Library& library, Transport& control, const Deadline& deadline,
                           const std::string& user);

}  // namespace plumbline::transport::cuda

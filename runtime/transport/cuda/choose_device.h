// The device of a rank that is a process.
#pragma once

#include "runtime/transport/cuda/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::cuda {

struct DeviceOfRank {
  int device = 0;   ///< its number on this machine
  int devices = 0;  ///< of this machine
  int ranks = 0;    ///< of the job on this machine
};

/// The ranks of a machine take its devices in turn; sets the current device of this thread. All ranks call it. Throws
/// Error, which begins with `user`, if there is none.
DeviceOfRank choose_device(const Library& library, Transport& control, const Deadline& deadline,
                           const std::string& user);

}  // namespace plumbline::transport::cuda

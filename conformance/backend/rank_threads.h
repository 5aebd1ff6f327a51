// Ranks that are threads of this process, and where they compute.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// transport::run_thread_ranks(); each rank is told its device. `device`: "cpu", or "cuda", whose devices the ranks
/// take in turn. `slow_copies`: each copy between devices begins later than it could (cuda/library.h). Also throws
/// Error if there is no such device.
void run_thread_ranks_on(const std::string& device, bool slow_copies, int ranks,
                         const std::function<void(transport::Transport&, c10::Device)>& body);

}  // namespace plumbline::conformance

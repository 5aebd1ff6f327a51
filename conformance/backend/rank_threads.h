// Ranks that are threads of this process, and where they compute.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Runs `body` on `ranks` threads, each with its own endpoint and its device, as transport::run_thread_ranks() does,
/// and throws what that throws. `device` is "cpu" or "cuda". With "cuda", rank r computes on device r modulo the number
/// of devices, so that ranks may share one; `slow_copies` makes each copy of a message begin 2 ms later than it could
/// (cuda::with_slow_copies()). Throws Error if there is no device, or if the libraries for it cannot be loaded. With
/// "cpu", `slow_copies` is ignored.
void run_thread_ranks_on(const std::string& device, bool slow_copies, int ranks,
                         const std::function<void(transport::Transport&, c10::Device)>& body);

}  // namespace plumbline::conformance

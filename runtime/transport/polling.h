// How long a waiting rank polls before it sleeps.
#pragma once

#include <chrono>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

/// Longer than a sleeping rank takes to wake up. Otherwise two ranks that answer each other immediately would always
/// find the other asleep: 50 us for each message instead of 1.
inline constexpr std::chrono::microseconds kPolling{60};

/// kPolling, or nothing if `ranks` share fewer `cores`: polling would take the core from the rank that must answer.
inline Clock::duration polling_time(int ranks, long cores) { return ranks > cores ? Clock::duration() : kPolling; }

}  // namespace plumbline::transport

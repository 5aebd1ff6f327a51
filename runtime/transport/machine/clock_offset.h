// By how much the clock of a rank is ahead of rank 0's: the steady clocks of different hosts have nothing in common.
// Method: F. Cristian, "Probabilistic clock synchronization", 1989. Of several round trips the shortest counts; rank
// 0's time lies between its begin and its end, so that half of it bounds the error.
#pragma once

#include <functional>

#include "runtime/clock.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport {

struct ClockOffset {
  double seconds = 0;  ///< this rank's clock minus rank 0's
  double error = 0;    ///< bound of the error, in seconds
};

/// A collective operation, as those of collectives.h. `now` is this rank's clock, in seconds. Ranks are measured one
/// after another. Rank 0's offset is exactly 0.
ClockOffset measure_clock_offset(Transport& transport, const Deadline& deadline,
                                 const std::function<double()>& now = clock_seconds);

/// The seconds to subtract from this rank's clock: 0 where the measured offset is within its error, as it always is for
/// ranks on one host, whose clock is one and the same.
double correction(const ClockOffset& offset);

}  // namespace plumbline::transport

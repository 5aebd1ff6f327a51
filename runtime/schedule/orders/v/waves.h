// hanayo: several V's in a row, a wave; schedule_kinds.cc describes it.
//
// The placement of Liu et al., Hanayo, arXiv 2308.15762: stages go down the ranks and up again, W times, so that each
// rank holds 2W stages and turns need no transfer. The order is ours, since the paper gives it only in pictures. A free
// rank executes a ready backward, that of the earliest micro-batch; otherwise a ready forward; otherwise it waits. Of
// several ready forwards it executes that of the latest stage, that of the earliest stage, or the one whose input
// arrived first: all three rules are tried on the given durations, and the order that ends first is kept. At most P
// micro-batches (or the memory limit) are in flight at once, which bounds a rank's activations.
//
// The paper gives (2P-2) / (3PW+P-1) as the bubble for M = P and B = 2F. This order comes near that bubble but does not
// attain it: the tests have the numbers. For M well above P it is worse than interleaved-1f1b but needs less memory.
//
// About (number of actions) x (W + log P) steps.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Throws InputError for an odd number of stages per rank or more than 1024, and for durations or a limit out of range
/// (measured.h).
Schedule hanayo(const ScheduleRequest& request);

}  // namespace plumbline::schedule

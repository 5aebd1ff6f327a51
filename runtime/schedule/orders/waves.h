// hanayo: several V's in a row, a wave; generators.cc says what it is.
//
// The placement of Liu et al., Hanayo, arXiv 2308.15762: stages go down the ranks and up again, W times, so that each
// rank holds 2W of them and turns need no transfer. The order is ours, since the paper tells it by pictures: a rank
// that is free does a backward that can begin, the one of the earliest micro-batch; else a forward that can begin; else
// it waits. Of several forwards it takes that of the latest stage, or that of the earliest stage, or the one whose
// input has been there longest: all three are tried on the given durations and the one that ends first is kept. At most
// P micro-batches (or the memory limit) are under way at once, which bounds what a rank holds.
//
// The paper gives (2P-2) / (3PW+P-1) as the bubble for M = P and B = 2F. This order comes near it and does not meet it:
// tests have the numbers. For M well above P it is worse than interleaved-1f1b, and asks for less memory.
//
// About (number of actions) x (W + log P) steps.
#pragma once

#include "runtime/schedule/orders/generators.h"

namespace plumbline::schedule {

/// Throws InputError for an odd number of stages per rank, and for durations or a limit that are out of range
/// (measured.h).
Schedule hanayo(const ScheduleRequest& request);

}  // namespace plumbline::schedule

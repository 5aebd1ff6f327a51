// Orders with V stages on each rank, stage s on rank s mod P; schedule_kinds.cc describes each.
//
// A rank executes its stages in turn, each for a group of g micro-batches: forwards by ascending stage, backwards by
// descending stage. For rank r of P:
//   interleaved-1f1b         in turn (in_turn.h) after (V-1) g + 2 (P-1-r) forwards
//   interleaved-zero-bubble  by halves after (V-1) g + (P-1-r) forwards, the W delayed by r
//   looped-bfs               one group of all micro-batches: all forwards, then all backwards, which go by descending
//                            micro-batch
// PyTorch's rule for the groups (the default): their number is max(1, M / P), rounded down, and their size is equal.
// Megatron's (an explicit group size): groups of that size and a last one that may be smaller, though not smaller than
// P. The two orders with groups throw InputError for numbers that do not satisfy these rules, with the nearest that do.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

Schedule interleaved_one_f_one_b(const ScheduleRequest& request);
Schedule interleaved_zero_bubble(const ScheduleRequest& request);
Schedule looped_bfs(const ScheduleRequest& request);

}  // namespace plumbline::schedule

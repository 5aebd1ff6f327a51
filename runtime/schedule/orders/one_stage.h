// Orders with one stage on each rank, stage r on rank r; schedule_kinds.cc describes each.
//
// For rank r of P, all but gpipe and forward-only are forwards and backwards in turn (in_turn.h) after w forwards, both
// by ascending micro-batch:
//   1f1b           w = P - 1 - r
//   eager-1f1b     w = 2 (P - 1 - r): twice as many, which hides the transfers
//   zb-h1, zb-h2   in halves: w = P - 1 - r, lag r; w = 2 (P - 1 - r), lag 2r
//   seq1f1b        w = P - 2 - r + k for k slices; the backwards of one sequence go by descending slice
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

Schedule gpipe(const ScheduleRequest& request);
Schedule one_f_one_b(const ScheduleRequest& request);
Schedule eager_one_f_one_b(const ScheduleRequest& request);
Schedule zb_h1(const ScheduleRequest& request);
Schedule zb_h2(const ScheduleRequest& request);
/// Throws InputError for less than one slice, and for micro-batches that are no multiple of the slices.
Schedule seq_one_f_one_b(const ScheduleRequest& request);
Schedule forward_only(const ScheduleRequest& request);

}  // namespace plumbline::schedule

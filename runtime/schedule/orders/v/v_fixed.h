// V orders given by a rule: two stages on each rank, so that every micro-batch goes down the ranks and up again.
//
// Rank r of P holds stage r (lane 0 below) and stage 2P-1-r (lane 1). F0 is a forward of lane 0, B1 a backward of lane
// 1, and so on; "n x" repeats the next step or bracket n times.
//
// zb-v is the order of PyTorch's ScheduleZBVZeroBubble, for n = max(M, 2P-1) micro-batches, where the actions of
// micro-batches from M on are then left out:
//   2(P-r)-1 x F0;  r x (F1 F0);  P-r x (F1 I1 W1);  n-2P+1+r x (F0 I0 W0 F1 I1 W1);  P-1-r x (I0 W0 F1 I1 W1);
//   r x (I0 I1);  P-r x (I0 W0);  r x W1;  r x W0
//
// dualpipe-v is the order of DeepSeek's DualPipeV, as in PyTorch's ScheduleDualPipeV. (F;B) is a group, and a W without
// a lane is the weight half that has waited longest:
//   2(P-1-r) x F0;  r+1 x (F0 F1);  P-1-r x (I1 W F1);  M-2P+1+r x ((F0;B1) (F1;B0)), the first F0 and B1 of the last
//   rank apart;  P-1-r x (B1 (F1;B0));  r+1 x (B1 B0), from its middle on (I1 I0);  P-1-r x (W I0);  r+1 x W
#pragma once

#include <vector>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/orders/two_lanes.h"

namespace plumbline::schedule {

Schedule zb_v(const ScheduleRequest& request);
/// Throws InputError for fewer than 2P micro-batches.
Schedule dual_pipe_v(const ScheduleRequest& request);

/// The order of `rank` in DualPipeV on `ranks` ranks for the given flows, which must have equally many micro-batches,
/// at least 2 x ranks. DualPipe calls it with half of its ranks.
std::vector<Action> dual_pipe_order(int rank, int ranks, const std::array<Lane, 2>& lanes);

}  // namespace plumbline::schedule

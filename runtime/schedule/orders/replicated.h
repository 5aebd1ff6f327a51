// Orders with two replicas of the model in opposite directions: replica 0 has stage s on rank s, replica 1 on rank
// P-1-s. Each takes half of the micro-batches: replica 0 the lower half of the numbers, replica 1 the upper.
//
// dualpipe is DualPipeV's order (v_fixed.h) with P/2 for P, M/2 for M and min(r, P-1-r) for r; lane 0 is the replica
// whose first half the rank belongs to.
//
// chimera: units of P micro-batches (the last may have fewer), half of each through either replica. In slots of equal
// length, the i-th micro-batch of a replica's half of unit u has its F on the q-th rank of its way in slot 2Pu + q + 2i
// and its B in slot 2Pu + 2P-1-q + 2i; for even P no two meet on a rank. The rank's order is that of the slots: within
// a unit both replicas execute 1F1B, and units follow one another with no slot between them, which the paper calls
// direct concatenation.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

Schedule dual_pipe(const ScheduleRequest& request);
Schedule chimera(const ScheduleRequest& request);

}  // namespace plumbline::schedule

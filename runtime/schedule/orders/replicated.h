// Orders with two replicas of the model in opposite directions: replica 0 has stage s on rank s, replica 1 on rank
// P-1-s. Of M micro-batches, 0 to M/2 - 1 go through replica 0, the others through replica 1.
//
// dualpipe is DualPipeV's order (v/v_fixed.h) with P/2 for P, M/2 for M and min(r, P-1-r) for r; lane 0 is the replica
// that has one of its first P/2 stages on the rank.
//
// chimera: units of P micro-batches (the last may have fewer), half of each through either replica. In slots of equal
// length, micro-batch i (from 0) of a replica's half of unit u has its F for stage q in slot 2Pu + q + 2i and its B for
// stage q in slot 2Pu + 2P-1-q + 2i; for even P no rank has two actions in a slot. A rank executes its actions in the
// order of the slots. Within a unit both replicas execute 1F1B. A unit begins 2P slots after the previous one, before
// all ranks have ended that one (for P = 4, rank 0 has the first F of unit 1 in slot 8 and the last B of unit 0 in slot
// 9); the paper calls this direct concatenation.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Throws InputError for an odd number of ranks or of micro-batches, and for fewer than 2P micro-batches.
Schedule dual_pipe(const ScheduleRequest& request);
/// Throws InputError for an odd number of ranks or of micro-batches.
Schedule chimera(const ScheduleRequest& request);

}  // namespace plumbline::schedule

// The schedule of a case: that of one pipeline, on the ranks of every data-parallel replica.
#pragma once

#include "conformance/protocol/schedule/chosen_schedule.h"
#include "reference/case.h"
#include "runtime/schedule/lowering/replica_actions.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// Returns `chosen` for the case on `ranks` ranks in all: each of the case's replicas has its part of the ranks and of
/// the micro-batches (orders/data_parallel.h). The case's own schedule already contains all replicas, and accepts 0
/// ranks. Throws InputError if the numbers cannot be divided among the replicas, and as make_schedule() does.
schedule::Schedule case_schedule(const reference::Case& c, const ChosenSchedule& chosen, int ranks);

/// The way in which our engine shares parameters and gradients among the case's replicas.
schedule::ReplicaOptions replica_options(const reference::Case& c);

}  // namespace plumbline::conformance

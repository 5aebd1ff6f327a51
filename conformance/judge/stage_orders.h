// The order of micro-batches in each stage of a schedule: the only part of a schedule that the detached oracle reads.
#pragma once

#include "reference/oracle/detached_run.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// Returns the orders, indexed by stage and then by replica of the model. The order of backwards, in which a stage
/// accumulates its gradients, is that of its B and W actions; the I half of a split backward does not count.
reference::StageOrders stage_orders(const schedule::Schedule& schedule);

}  // namespace plumbline::conformance

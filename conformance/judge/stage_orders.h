// The order of a schedule as plain data, which is all that the detached oracle is told of it.
#pragma once

#include "reference/detached_run.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// A stage adds up its gradients in the order of its W where the backward comes in halves, else of its B. Each replica
/// of the model has a copy of each stage.
reference::StageOrders stage_orders(const schedule::Schedule& schedule);

}  // namespace plumbline::conformance

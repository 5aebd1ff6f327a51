// The order of a schedule as plain data: the only part of a schedule that the detached oracle reads.
#pragma once

#include "reference/oracle/detached_run.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// A stage adds up its gradients in the order of its W actions if the backward is split, else of its B actions. Each
/// replica of the model has a copy of each stage.
reference::StageOrders stage_orders(const schedule::Schedule& schedule);

}  // namespace plumbline::conformance

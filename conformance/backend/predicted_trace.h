// The simulator's prediction of a measurement, drawn above the measured trace.
#pragma once

#include "conformance/protocol/job.h"
#include "runtime/schedule/orders/timed/durations.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/trace.h"

namespace plumbline::conformance {

/// Returns for how long a sleeping stage sleeps for one micro-batch, in milliseconds; equal for all stages. The item's
/// forward_ms and backward_ms are those of all stages of one rank together, so that schedules with different numbers of
/// stages per rank compare: F and B of a stage take ranks / stages times as long. I and W each take half of B.
schedule::Durations sleeping_durations(const JobThroughput& item, const schedule::Schedule& schedule);

/// Returns the simulated step of `item` on as many ranks as `measured` has, named "predicted"; all times, also those of
/// `measured`, are in milliseconds. Each action of a sleeping stage takes the time of sleeping_durations(). Each action
/// of a model's stage takes the mean over the actions of its stage and kind in `measured`, so that the picture shows
/// time lost between actions, not in them. Transfers take no time. Throws InputError as make_schedule() and
/// simulate_step() do, such as for a model's stage without a forward in `measured`.
schedule::Trace predicted_trace(const JobThroughput& item, const schedule::Trace& measured);

}  // namespace plumbline::conformance

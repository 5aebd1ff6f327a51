// The simulator's prediction of a measurement, drawn above the measured trace.
#pragma once

#include "conformance/protocol/job.h"
#include "runtime/schedule/orders/timed/durations.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/trace.h"

namespace plumbline::conformance {

/// How long each sleeping stage sleeps, in milliseconds. The item's times are those of a rank and its stages share
/// them, so that schedules with different numbers of stages a rank compare.
schedule::Durations sleeping_durations(const JobThroughput& item, const schedule::Schedule& schedule);

/// The step of `item` on the ranks of `measured`, in milliseconds, named "predicted". Sleeping stages take the times
/// that they were told to sleep; stages of a model their mean times in the measured step, so that the picture shows
/// time lost between actions, not in them. Transfers cost nothing.
schedule::Trace predicted_trace(const JobThroughput& item, const schedule::Trace& measured);

}  // namespace plumbline::conformance

// What the simulator says of a measurement, to be drawn above what was measured.
#pragma once

#include "conformance/protocol/job.h"
#include "runtime/schedule/orders/durations.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/trace.h"

namespace plumbline::conformance {

/// How long a stage of sleeping ones sleeps, in milliseconds: the item's times are those of a rank, whose stages share
/// them, so that schedules can be compared however many stages a rank has.
schedule::Durations sleeping_durations(const JobThroughput& item, const schedule::Schedule& schedule);

/// The step of `item` on as many ranks as `measured` has, in milliseconds, named "predicted". Sleeping stages take the
/// times they were asked to sleep; those of a model what they took on average in the measured step, so that the picture
/// shows what is lost between actions, not in them. Stages hand values to the next one at no cost.
schedule::Trace predicted_trace(const JobThroughput& item, const schedule::Trace& measured);

}  // namespace plumbline::conformance

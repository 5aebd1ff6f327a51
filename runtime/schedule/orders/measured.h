// The durations and memory parameters that schedules with given durations share.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// The request's durations; by default all 1, with free transfers. Throws InputError for a duration that is not finite
/// or below 0 (F: not above 0).
Durations measured_durations(const ScheduleRequest& request);

/// The request's memory limit, in micro-batches; by default the number of ranks. Throws InputError for one that is not
/// finite or below 1: nothing can run without room for a micro-batch.
double measured_limit(const ScheduleRequest& request);

/// The share of a micro-batch's activations that is kept between its I and its W; 0.5 by default. Throws InputError for
/// one outside [0, 1].
double kept_for_weights(const ScheduleRequest& request);

/// Most activations that a rank of a compute schedule holds at once, in (stage, micro-batch): an F takes one, an I
/// gives (1 - `kept`) of it back, and its W or a B the rest.
double peak_activations(const Schedule& schedule, double kept);

/// Whether `activations` and one more stay within `limit`; both are sums of a few fractions.
bool has_room(double activations, double limit);

}  // namespace plumbline::schedule

// The durations and memory parameters that schedules with given durations share.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// The request's durations; by default all 1, with free transfers. Throws InputError for a duration that is infinite,
/// NaN or below 0 (F: not above 0).
Durations measured_durations(const ScheduleRequest& request);

/// The request's memory limit, in micro-batches; by default the number of ranks. Throws InputError for a limit that is
/// not finite or is below 1: nothing can run without room for a micro-batch.
double measured_limit(const ScheduleRequest& request);

/// The share of a micro-batch's activations that is kept between its I and its W; 0.5 by default. Throws InputError for
/// a share outside [0, 1].
double kept_for_weights(const ScheduleRequest& request);

/// The most activations, of one stage and micro-batch, that any rank of a compute schedule holds at once: an F takes
/// one, an I gives (1 - `kept`) of it back, and its W or a B the rest.
double peak_activations(const Schedule& schedule, double kept);

/// Whether `activations` and one more stay within `limit`, with a small tolerance, since both are sums of fractions.
bool has_room(double activations, double limit);

}  // namespace plumbline::schedule

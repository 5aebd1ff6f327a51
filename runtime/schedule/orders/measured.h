// What schedules made to measure share: the times and the memory they are made for.
#pragma once

#include "runtime/schedule/orders/generators.h"

namespace plumbline::schedule {

/// The request's durations; all 1, with free transfers, where it has none. Throws InputError for one that is not finite
/// or below 0 (F: not above 0).
Durations measured_durations(const ScheduleRequest& request);

/// The request's memory limit, in micro-batches; the number of ranks where it has none. Throws InputError for one that
/// is not finite or below 1: nothing can run without room for a micro-batch.
double measured_limit(const ScheduleRequest& request);

/// Which part of a micro-batch's activations is kept between its I and its W; 0.5 where the request does not say.
/// Throws InputError for one outside [0, 1].
double kept_for_weights(const ScheduleRequest& request);

/// Most activations that a rank of a compute schedule holds at once, in (stage, micro-batch): an F takes one, an I
/// gives 1 - `kept` of it back, and its W or a B what is left.
double peak_activations(const Schedule& schedule, double kept);

/// Whether `activations` and one more stay within `limit`, both sums of a few fractions.
bool has_room(double activations, double limit);

}  // namespace plumbline::schedule

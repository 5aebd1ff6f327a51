// v-half and v-min: V-shaped orders from a repeated pattern, with a half and a third of 1f1b's activations;
// schedule_kinds.cc describes each.
//
// Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, with the offsets and the squeezing of its
// authors' implementation (project zero-bubble-pipeline-parallelism of sail-sg, scheduler zbv_greedy). Slots have unit
// length. On every rank each micro-batch repeats the actions of the previous one six slots later; then actions move to
// earlier slots as long as the peak of activations over all ranks does not grow. The order depends on the numbers of
// ranks and micro-batches only, not on durations. The order differs from the authors' in one case: with so few
// micro-batches that rank 0 has executed all its forwards of the first stage before its first input half of that stage,
// the end of the order is squeezed too.
//
// Takes about P M log(P M) steps for sorting, and for each action up to about 6P steps, one for each slot that it could
// pass.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Both throw InputError for more than 2^28 slots, of which there are 6 P (P + M).
Schedule v_half(const ScheduleRequest& request);
Schedule v_min(const ScheduleRequest& request);

}  // namespace plumbline::schedule

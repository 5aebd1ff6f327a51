// v-half and v-min: V-shaped orders from a repeated pattern, with a half and a third of 1f1b's activations;
// generators.cc says what each is.
//
// Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, with the offsets and
// the squeezing of its authors' implementation (project zero-bubble-pipeline-parallelism of sail-sg, scheduler
// zbv_greedy). In unit slots, each micro-batch does the same six slots after the one before it; then what can is moved
// to an earlier slot as long as the most that any rank holds does not grow. The order depends on the numbers of ranks
// and micro-batches only, not on durations. Ours beyond theirs: with so few micro-batches that rank 0 has done all its
// forwards of the first stage before its first input half of that stage, the end of the order is squeezed too.
//
// About P M log(P M) steps for the sorting, and for each action the slots that it could jump over: some 6P.
#pragma once

#include "runtime/schedule/orders/generators.h"

namespace plumbline::schedule {

Schedule v_half(const ScheduleRequest& request);
Schedule v_min(const ScheduleRequest& request);

}  // namespace plumbline::schedule

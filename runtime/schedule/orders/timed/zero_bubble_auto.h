// zb-auto: the zero-bubble order for given durations and a memory limit; schedule_kinds.cc describes it.
//
// The greedy construction of Qi et al., arXiv 2401.10241, section 3, after its authors' implementation (project
// zero-bubble-pipeline-parallelism of sail-sg, scheduler zb): for each micro-batch in turn, some of the ranks execute
// one forward, then every rank executes one I; W fills the gaps before both. Three switches give eight orders; the one
// with the least longest_rank (Timeline) is kept. We differ in two points: zb-h1 and zb-h2 compete too if they fit into
// the memory, so that the result is never worse than they are; and memory is counted in whole activations, so that
// rounding decides nothing. The paper's integer program, which may improve on the greedy order, is left out.
//
// Takes time linear in the number of actions.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Throws InputError for durations, a memory limit or a share of memory out of range (measured.h). The time of a full
/// backward is unused, since the order has no B.
Schedule zb_auto(const ScheduleRequest& request);

}  // namespace plumbline::schedule

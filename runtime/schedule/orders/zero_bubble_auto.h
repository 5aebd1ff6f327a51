// zb-auto: the zero-bubble order made for given durations and a memory limit; generators.cc says what it is.
//
// The greedy construction of Qi et al., arXiv 2401.10241, section 3, as its authors' implementation does it (project
// zero-bubble-pipeline-parallelism of sail-sg, scheduler zb): micro-batch after micro-batch every rank that should does
// one forward, then every rank one I, and W goes into the gaps before them. Three switches make eight orders; the one
// with the least longest_rank (simulate.h) is kept. Two things are ours: zb-h1 and zb-h2, where they fit into the
// memory, compete too, so that the result is never worse than they; and memory is counted in whole activations, so
// that no rounding decides. The paper's integer program, which may improve on the greedy order, is left out.
//
// Linear in the number of actions.
#pragma once

#include "runtime/schedule/orders/generators.h"

namespace plumbline::schedule {

/// Throws InputError for durations, a memory limit or a share of memory that are out of range (measured.h). A full
/// backward's time is not used: there is none.
Schedule zb_auto(const ScheduleRequest& request);

}  // namespace plumbline::schedule

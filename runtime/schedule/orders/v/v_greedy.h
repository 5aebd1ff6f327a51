// zb-v-greedy: the V-shaped zero-bubble order for given durations; schedule_kinds.cc describes it.
//
// The greedy construction of ZB-V (Qi et al., arXiv 2401.10241, section 6) after its authors' implementation (project
// zero-bubble-pipeline-parallelism of sail-sg, scheduler zbv). Each rank has two stages and room for 2P activations of
// one stage: the memory of 1f1b, which holds P activations of a stage twice as large. After a warm-up with all forwards
// that fit, every rank executes an input half and a forward in turn, with W in the gaps. Two switches (a W that is too
// long for a gap may fill it before a forward; before an input half of the rank's later stage) give four orders. Each
// order is rebuilt with the ranks' waiting times in the previous attempt as long as that shortens the longest wait; the
// order with the shortest one is kept.
//
// Each attempt takes time linear in the number of actions; no observed case needed more than six attempts for a pair of
// switches.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Throws InputError for durations or a share of memory out of range (measured.h). The time of a full backward is
/// unused, since the order has no B.
Schedule zb_v_greedy(const ScheduleRequest& request);

}  // namespace plumbline::schedule

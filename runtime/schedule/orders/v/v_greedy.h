// zb-v-greedy: the V-shaped zero-bubble order for given durations; schedule_kinds.cc describes it.
//
// The greedy construction of ZB-V (Qi et al., arXiv 2401.10241, section 6) after its authors' implementation (project
// zero-bubble-pipeline-parallelism of sail-sg, scheduler zbv). Each rank has two stages and room for 2P activations of
// one stage, which equals what 1f1b needs for P of both. After a warm-up with all forwards that fit, every rank
// executes an input half and a forward in turn, with W in the gaps. Two switches (may a W that is too long fill a gap
// before a forward; before an input half of the rank's later stage) make four orders. Each is rebuilt with the waiting
// times of the ranks in the previous attempt, as long as that shortens the longest wait.
//
// Linear in the number of actions for each attempt; no pair of switches was ever seen to need more than six.
#pragma once

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Throws InputError for durations or a share of memory out of range (measured.h). The time of a full backward is
/// unused: the order has none.
Schedule zb_v_greedy(const ScheduleRequest& request);

}  // namespace plumbline::schedule

// zb-v-greedy: the V-shaped zero-bubble order made for given durations; generators.cc says what it is.
//
// The greedy construction of ZB-V (Qi et al., arXiv 2401.10241, section 6) as its authors' implementation does it
// (project zero-bubble-pipeline-parallelism of sail-sg, scheduler zbv). Each rank has two stages and room for 2P
// activations of one, which is what 1f1b needs for P of both. After a warm-up with all forwards that fit, every rank
// does an input half and a forward in turn, with W in the gaps. Two switches (may a gap before a forward, before an
// input half of the rank's later stage be filled with a W that is too long for it) make four orders; each is made anew,
// told how long each rank waited last time, as long as that makes the longest wait shorter.
//
// Linear in the number of actions each time that it is made; more than six times for a pair of switches were never
// seen.
#pragma once

#include "runtime/schedule/orders/generators.h"

namespace plumbline::schedule {

/// Throws InputError for durations or a share of memory that are out of range (measured.h). A full backward's time is
/// not used: there is none.
Schedule zb_v_greedy(const ScheduleRequest& request);

}  // namespace plumbline::schedule

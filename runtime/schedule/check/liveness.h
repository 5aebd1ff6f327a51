// Counts the activations that a rank holds at the same time.
//
// An activation lives from its F to the last action that needs it, the B or the W; with an OFFLOAD it lives twice, from
// the F to the OFFLOAD and from the RELOAD to the end. The members of a group run at once.
#pragma once

#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// Indexed by rank: the most activations (of a stage and micro-batch) that the rank holds at once, if it waits for each
/// OFFLOAD at once. The schedule must be valid (check.h) and have a backward.
std::vector<int> peak_live(const Schedule& schedule);

}  // namespace plumbline::schedule

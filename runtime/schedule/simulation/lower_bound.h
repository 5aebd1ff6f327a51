// A lower bound on the duration of any order of the same actions on the same ranks.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/simulation/costs.h"

namespace plumbline::schedule {

struct LowerBound {
  double makespan = 0;      ///< the largest of the three bounds below
  double busiest_rank = 0;  ///< of any rank: its work plus the least time before its first and after its last action
  double chain = 0;         ///< one micro-batch through all stages and, unless forward-only, back
  double busiest_link = 0;  ///< of any link: all its messages, one after another; 0 unless links are occupied
  std::string reason;       ///< the bound that is the largest, in words, such as "rank 2: at least 2 before its first
                            ///< action, 36 of work"
};

/// The edges are the given ones and those of costs.skips. The bound holds for all schedules with the same placement of
/// stages, halved backwards and groups as `compute`, in any order. For rank r, let head_r be the least time before it
/// can begin, busy_r its work, early_r the same except each W outside a group, and tail_r the least time after its last
/// F, B or I; the bound is max(head_r + busy_r, head_r + early_r + tail_r). A schedule that attains it is optimal;
/// zb-h2 and zb-v do for F = I = W without latency. Throws InputError as simulate_step() does, except that ranks may
/// wait for one another.
LowerBound lower_bound(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs);

}  // namespace plumbline::schedule

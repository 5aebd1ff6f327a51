// The time a schedule takes in theory: discrete events, equal stages, transfers that only delay.
//
// What measured throughput is compared with. The model is that of the zero-bubble paper's tables (Qi et al., arXiv
// 2401.10241): each rank does its actions strictly in order, an action starts when its rank is free and all it needs is
// there, and what comes from another rank arrives `comm` after it was made, without occupying anybody. So it is a lower
// bound for a real run.
#pragma once

#include <vector>

#include "runtime/schedule/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline {

struct SimulateOptions {
  /// Stage 0 has nobody to send gradients to, so that a runtime may put its whole backward off: its I takes no time and
  /// its W takes input + weight. On for what real runs are compared with (ours does so); off for papers' tables.
  bool first_stage_defers = false;
};

struct Timeline {
  double makespan = 0;             ///< end of the last action; the first can start at 0
  double longest_rank = 0;         ///< most time from the start of a rank's first action to the end of its last
  double bubble_makespan = 0;      ///< 1 - (sum of busy) / (ranks x makespan): a step that begins and ends together
  double bubble_longest_rank = 0;  ///< the same by longest_rank, as the zero-bubble papers count: ranks may enter the
                                   ///< next step before others end this one
  std::vector<double> busy;        ///< per rank: the time spent in actions
  std::vector<double> begin;       ///< per rank: the start of its first action
  std::vector<double> end;         ///< per rank: the end of its last action
  std::vector<int> peak_live;      ///< per rank: most (stage, micro-batch) activations at once, from F to B or W
};

/// `compute` is a compute schedule over a chain of stages (0 -> 1 -> ...), possibly forward-only. Throws InputError for
/// durations that are not finite or below 0 (F: not above 0), for a schedule with sends and receives, and for one with
/// violations (check.h).
Timeline simulate(const Schedule& compute, const Durations& durations, const SimulateOptions& options = {});

/// The fraction of all ranks' time in which they stand still, from the first action of the step to the last, for equal
/// stages, free transfers and F = I = W. Throws as simulate does.
double ideal_bubble(const Schedule& compute);

/// The same with a backward of `tb` whose halves take tb / 2 each.
Timeline simulate(const Schedule& compute, double tf, double tb, double comm = 0);

}  // namespace plumbline

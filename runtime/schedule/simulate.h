// The time a schedule takes in theory: discrete events, equal stages, transfers that only delay.
//
// What measured throughput is compared with. The model is that of the zero-bubble paper's tables (arXiv 2401.10241):
// each rank does its actions strictly in order, an action starts when its rank is free and all it needs is there, and
// what comes from another rank arrives `comm` after it was made, without occupying anybody. So it is a lower bound for
// a real run.
#pragma once

#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline {

struct Timeline {
  double makespan = 0;         ///< end of the last action; the first can start at 0
  double bubble = 0;           ///< 1 - (sum of busy) / (ranks x makespan)
  std::vector<double> busy;    ///< per rank: the time spent in actions
  std::vector<double> end;     ///< per rank: the end of its last action
  std::vector<int> peak_live;  ///< per rank: most (stage, micro-batch) activations at once, from F to B or W
};

/// `compute` is a compute schedule over a chain of stages (0 -> 1 -> ...), possibly forward-only; `tf` > 0 and `tb` >=
/// 0 are the durations of one F and one B, `comm` >= 0 the delay between ranks, all in one unit; I and W take half of
/// `tb` each. Throws InputError for other numbers, for a schedule with sends and receives, and for one with violations
/// (check.h).
Timeline simulate(const Schedule& compute, double tf, double tb, double comm = 0);

}  // namespace plumbline

// For tests: a slow judge of compute schedules, which shares no code with check.h, replay.h or simulate.h.
#pragma once

#include <string>

#include "runtime/schedule/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::testing {

struct Played {
  std::string problem;  ///< why it does not run to its end, or what is missing or twice; empty: neither
  double makespan = 0;
  double longest = 0;     ///< most time from a rank's first action to the end of its last
  double peak = 0;        ///< most (stage, micro-batch) activations on a rank: F +1, I -(1 - kept), W -kept, B -1
  bool ascending = true;  ///< every stage does its B and its W by ascending micro-batch
};

/// Plays a schedule over a chain of stages, of one replica, by trying rank after rank until none can go on.
Played play(const Schedule& schedule, const Durations& durations, double kept = 1);

}  // namespace plumbline::testing

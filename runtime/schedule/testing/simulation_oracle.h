// For tests: a slow simulator that shares only the argument types with simulation.h. Time advances in steps of 1, so
// all durations, latencies and bytes / bandwidth must be whole numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/costs.h"

namespace plumbline::testing {

struct SlowStep {
  bool deadlock = false;
  double makespan = 0;
  std::map<std::string, double> begin, end;  ///< by the text of an action; members of a group have the group's times
  std::vector<double> busy, peak_memory;     ///< per rank
};

SlowStep slow_step(const schedule::Schedule& compute, const std::vector<schedule::StageEdge>& edges,
                   const schedule::StepCosts& costs);

}  // namespace plumbline::testing

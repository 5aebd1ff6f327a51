// The time of each action, measured by the engine or predicted by the simulator: in one form, so that pictures can show
// both side by side.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/action.h"

namespace plumbline::schedule {

struct TimedAction {
  Action action;
  double begin = 0, end = 0;  ///< in the unit of the trace
};

struct Trace {
  std::string name;                             ///< such as "predicted"
  std::vector<std::vector<TimedAction>> ranks;  ///< indexed by rank, ascending by begin; all times in one unit
};

}  // namespace plumbline::schedule

// The chain of actions and messages that determines the duration of a step.
#pragma once

#include "runtime/schedule/simulation/recording.h"

namespace plumbline::schedule {

/// From the last action to end (on a tie, the one on the lowest rank) back to time 0. If both its rank and a message
/// delayed an action until the same moment, the path follows the rank.
std::vector<PathStep> critical_path(const Schedule& compute, const Recording& recording);

}  // namespace plumbline::schedule

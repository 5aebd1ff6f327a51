// The chain of actions and messages that decides how long a step takes.
#pragma once

#include "runtime/schedule/simulation/recording.h"

namespace plumbline::schedule {

/// From the last action to end (of those, the one on the lowest rank) back to time 0. Where both its rank and a message
/// kept an action waiting to the same moment, it follows the rank.
std::vector<PathStep> critical_path(const Schedule& compute, const Recording& recording);

}  // namespace plumbline::schedule

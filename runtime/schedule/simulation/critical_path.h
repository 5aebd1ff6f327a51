// The chain of actions and messages that determines the duration of a step.
#pragma once

#include "runtime/schedule/simulation/recording.h"

namespace plumbline::schedule {

/// Returns the chain in ascending time, from time 0 to the end of the last action (on a tie, that on the lowest rank).
/// If both its rank and a message delayed an action until the same moment, the chain follows the rank. `recording` must
/// be complete: a record for every action and message.
std::vector<PathStep> critical_path(const Schedule& compute, const Recording& recording);

}  // namespace plumbline::schedule

// Orphans: processes that lost their parent and come to this one, as those of a program that has killed its guard.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

namespace plumbline::conformance {

/// From now on this process is the parent of each of its descendants that loses its own (PR_SET_CHILD_SUBREAPER). Such
/// orphans come only while no guard is between them and this process.
void adopt_orphans();

/// The children of this process, in no order: those that it started and those that it adopted.
std::vector<pid_t> children();

/// Kills and reaps every child that is not `kept`, also those that come meanwhile. Returns when none is left, or after
/// `longest`.
void end_orphans(const std::function<bool(pid_t)>& kept, std::chrono::milliseconds longest);

}  // namespace plumbline::conformance

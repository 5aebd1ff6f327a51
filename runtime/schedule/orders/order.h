// What generators share: the frame of a schedule, and refusing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/schedule/orders/generators.h"

namespace plumbline::schedule {

/// Throws InputError "schedule NAME: reason".
[[noreturn]] void refuse(const ScheduleRequest& request, const std::string& reason);

/// "4 ranks", "1 rank"
std::string counted(long long number, const std::string& what);

/// Stage s on rank s mod P, for P x V stages.
std::vector<int> looped_placement(const ScheduleRequest& request);

/// Down the ranks, up, down again ...: P x V stages, of which s and its neighbour across a multiple of P are on one
/// rank.
std::vector<int> v_placement(const ScheduleRequest& request);

/// A schedule whose rank r does order_of_rank(r).
Schedule assemble(const ScheduleRequest& request, std::vector<int> rank_of_stage,
                  const std::function<std::vector<Action>(int rank)>& order_of_rank);

}  // namespace plumbline::schedule

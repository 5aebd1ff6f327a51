// Shared by generators: the frame of a schedule, the placements and refusals.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Throws InputError "schedule NAME: reason".
[[noreturn]] void refuse(const ScheduleRequest& request, const std::string& reason);

/// "4 ranks", "1 rank"
std::string counted(long long number, const std::string& what);

/// Stage s on rank s mod P, for P x V stages.
std::vector<int> looped_placement(const ScheduleRequest& request);

/// Down the ranks, up, down again ...: P x V stages; s and its neighbour across a multiple of P share a rank.
std::vector<int> v_placement(const ScheduleRequest& request);

/// A schedule whose rank r executes order_of_rank(r).
Schedule assemble(const ScheduleRequest& request, std::vector<int> rank_of_stage,
                  const std::function<std::vector<Action>(int rank)>& order_of_rank);

}  // namespace plumbline::schedule

// Shared by generators: the frame of a schedule, the placements and the refusal of a request.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {

/// Throws InputError "schedule NAME: REASON".
[[noreturn]] void refuse(const ScheduleRequest& request, const std::string& reason);

/// The rank of each of the P x V stages: s mod P for stage s.
std::vector<int> looped_placement(const ScheduleRequest& request);

/// The rank of each of the P x V stages: down the ranks, up, down again ...; stages kP - 1 and kP share a rank.
std::vector<int> v_placement(const ScheduleRequest& request);

/// A schedule with the request's name and micro-batches, one stage for each entry of `rank_of_stage`, whose rank r
/// executes order_of_rank(r).
Schedule assemble(const ScheduleRequest& request, std::vector<int> rank_of_stage,
                  const std::function<std::vector<Action>(int rank)>& order_of_rank);

}  // namespace plumbline::schedule

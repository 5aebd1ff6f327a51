// The parts of check.h's validation and their shared arguments; shape_problem(schedule) must be empty.
#pragma once

#include "runtime/schedule/action_index.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/check/check_report.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// Everything about actions of one micro-batch that can be checked without running the schedule: places, counts, order
/// on each rank, groups, partners of sends and receives.
void check_actions(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index,
                   const CheckOptions& options, CheckReport& report);

/// Places and order of UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD.
void check_whole_stages(const Schedule& schedule, CheckReport& report);

void check_channel_order(const Schedule& schedule, const StageGraph& graph, CheckReport& report);

}  // namespace plumbline::schedule

// The parts of the validation of check.h. They add their findings to `report`; shape_problem(schedule) must be empty.
#pragma once

#include "runtime/schedule/action_index.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/check/check_report.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// Checks everything about actions of one micro-batch that does not require running the schedule: places, counts, order
/// on each rank, groups, partners of sends and receives. `index` is that of the schedule.
void check_actions(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index,
                   const CheckOptions& options, CheckReport& report);

/// Checks places and order of UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD.
void check_whole_stages(const Schedule& schedule, CheckReport& report);

/// Checks that activations are in memory when they are used: the order of OFFLOAD, RELOAD and the computations of the
/// same stage and micro-batch. `index` is that of the schedule.
void check_offloads(const Schedule& schedule, const ActionIndex& index, CheckReport& report);

/// Checks the order of messages as channel_order_violations() describes it.
void check_channel_order(const Schedule& schedule, const StageGraph& graph, CheckReport& report);

}  // namespace plumbline::schedule

// Lowering: from a compute schedule to one with sends and receives, in small passes; our engine runs the result. For
// PyTorch's lowering see lowering/pytorch.h.
//
// One SEND or RECV covers all values of its stage and micro-batch, to or from every other rank. Tags with stage, value
// and micro-batch distinguish transfers, so receives need not be posted in the order of the sends. An edge over which
// no gradient flows (integers, say) still has its SEND_B and RECV_B: they carry nothing.
#pragma once

#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// Applies both passes in order. `schedule` has computations, and OFFLOAD, RELOAD and actions of whole stages (UNSHARD,
/// ...), which keep their places; edges between stages of one rank need no transport. Throws InputError, with rank and
/// position, for any other action and for one that is on another rank than its stage or out of range; also for a
/// misshapen schedule (shape_problem) and an invalid edge (StageGraph).
Schedule lower(const Schedule& schedule, const std::vector<StageEdge>& edges);

/// Pass 1, for a schedule that lower() accepts: adds RECV_F directly before F, SEND_F directly after it; RECV_B
/// directly before B or I, SEND_B directly after it; each only if there is something to carry to or from another rank.
/// A group's receives are posted before it and its results sent after it, both in the order of its members.
Schedule insert_communication(const Schedule& compute, const StageGraph& graph);

/// Pass 2, for the result of pass 1: posts each RECV one computation (or group) earlier, so that its data can travel
/// during that computation; the receives of a rank's first computation stay first. The receive of a gradient is never
/// posted before the forward of the same stage and micro-batch, since its buffer would be useless until then.
Schedule hoist_receives(const Schedule& lowered);

}  // namespace plumbline::schedule

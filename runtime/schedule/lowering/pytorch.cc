#include "runtime/schedule/lowering/pytorch.h"

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"
#include "runtime/schedule/lowering/replica_actions.h"

namespace plumbline::schedule {

Schedule lower_as_pytorch(const Schedule& compute, const std::vector<StageEdge>& edges,
                          const PytorchLowering& options) {
  require_compute_only(compute);
  const StageGraph graph(compute.stages, edges);
  const std::vector<int> lookahead =
      unshard_lookahead(options.unshard_lookahead, static_cast<int>(compute.ranks.size()), options.max_active_stages);

  Schedule schedule = add_gathers(compute, options.max_active_stages, lookahead);
  schedule = add_sums(schedule, options.defer_reduce_grad_wait);
  schedule = add_send_receive(schedule, graph);
  schedule = add_send_waits(schedule);
  if (options.defer_pp_recv) schedule = defer_receives(schedule, graph);
  if (options.max_outstanding_sends) {
    schedule = limit_outstanding_sends(schedule, graph, *options.max_outstanding_sends);
  }
  return schedule;
}

}  // namespace plumbline::schedule

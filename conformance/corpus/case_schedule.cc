#include "conformance/corpus/case_schedule.h"

#include "runtime/schedule/orders/data_parallel.h"

namespace plumbline::conformance {

schedule::Schedule case_schedule(const reference::Case& c, const ChosenSchedule& chosen, int ranks) {
  if (c.replicas == 1 || !c.schedule_csv.empty()) return make_schedule(chosen, ranks, c.microbatches);
  const int microbatches = schedule::part_of_replica(c.microbatches, c.replicas, "micro-batches");
  return schedule::data_parallel(
      make_schedule(chosen, schedule::part_of_replica(ranks, c.replicas, "ranks"), microbatches), c.replicas);
}

schedule::ReplicaOptions replica_options(const reference::Case& c) {
  return {.reduce_early = c.replicas > 1, .shard = c.shards_parameters};
}

}  // namespace plumbline::conformance

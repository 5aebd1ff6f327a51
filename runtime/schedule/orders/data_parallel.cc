#include "runtime/schedule/orders/data_parallel.h"

#include <cstdint>
#include <string>

#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::schedule {
namespace {

void require_room(int replicas, std::int64_t of_each, const std::string& what) {
  if (of_each <= kMostForwards / replicas) return;
  throw InputError("data parallelism: " + std::to_string(replicas) + " replicas x " + what + "; at most " +
                   std::to_string(kMostForwards) + " are accepted");
}

}  // namespace

Schedule data_parallel(const Schedule& one, int replicas) {
  if (replicas < 1)
    throw InputError("data parallelism: " + std::to_string(replicas) + " replicas given; at least 1 is needed");
  if (const std::string problem = shape_problem(one); !problem.empty())
    throw InputError("schedule " + one.name + ": " + problem);
  if (replicas == 1) return one;
  require_room(replicas, std::int64_t{one.stages} * one.microbatches,
               std::to_string(one.stages) + " stages x " + std::to_string(one.microbatches) + " micro-batches");
  const std::size_t copies = one.rank_of_stage.size();  // at least one on each rank
  require_room(replicas, static_cast<std::int64_t>(copies), std::to_string(copies) + " copies of stages");
  const int ranks = static_cast<int>(one.ranks.size());
  Schedule all{one.name, one.stages, one.microbatches * replicas, {}, {}, {}};
  for (int copy = 0; copy < replicas; ++copy) {
    for (const int rank : one.rank_of_stage) all.rank_of_stage.push_back(rank + copy * ranks);
    for (int m = 0; m < one.microbatches; ++m) {
      const int replica = one.replica_of_microbatch.empty() ? 0 : one.replica_of_microbatch[m];
      all.replica_of_microbatch.push_back(copy * one.replicas() + replica);
    }
    for (std::vector<Action> actions : one.ranks) {
      for (Action& action : actions)
        if (has_microbatch(action.type)) action.microbatch += copy * one.microbatches;
      all.ranks.push_back(std::move(actions));
    }
  }
  return all;
}

int part_of_replica(int whole, int replicas, const char* what) {
  if (whole % replicas == 0 && whole >= replicas) return whole / replicas;
  throw InputError(std::to_string(whole) + " " + what + " cannot be divided among " + std::to_string(replicas) +
                   " data-parallel replicas; a multiple of " + std::to_string(replicas) + " is needed");
}

}  // namespace plumbline::schedule

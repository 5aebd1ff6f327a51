#include "runtime/schedule/schedule.h"

#include <algorithm>
#include <unordered_set>

namespace plumbline::schedule {

std::string describe_position(const Schedule& schedule, const Place& place) {
  return "rank " + std::to_string(place.rank) + ", position " + std::to_string(place.position) + " (" +
         to_string(schedule.ranks[place.rank][place.position]) + ")";
}

std::vector<int> stages_of_rank(const Schedule& schedule, int rank) {
  std::vector<int> stages;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int replica = 0; replica < schedule.replicas(); ++replica) {
      if (schedule.rank_of_stage[replica * schedule.stages + stage] != rank) continue;
      stages.push_back(stage);
      break;
    }
  }
  return stages;
}

std::vector<int> ranks_of_stage(const Schedule& schedule, int stage) {
  std::vector<int> ranks;
  std::unordered_set<int> seen;
  for (int replica = 0; replica < schedule.replicas(); ++replica) {
    const int rank = schedule.rank_of_stage[replica * schedule.stages + stage];
    if (seen.insert(rank).second) ranks.push_back(rank);
  }
  return ranks;
}

std::size_t group_end(std::span<const Action> actions, std::size_t position) {
  while (position + 1 < actions.size() && actions[position].overlaps_next) ++position;
  return position + 1;
}

std::vector<StageEdge> chain_edges(int stages) {
  std::vector<StageEdge> edges;
  for (int stage = 1; stage < stages; ++stage) edges.push_back({stage - 1, stage});
  return edges;
}

std::size_t action_count(const Schedule& schedule) {
  std::size_t count = 0;
  for (const auto& actions : schedule.ranks) count += actions.size();
  return count;
}

namespace {

template <class Is>
bool any_action(const Schedule& schedule, Is is) {
  return std::ranges::any_of(schedule.ranks,
                             [&](const std::vector<Action>& actions) { return std::ranges::any_of(actions, is); });
}

}  // namespace

bool has_communication(const Schedule& schedule) {
  return any_action(schedule,
                    [](const Action& action) { return !is_compute(action.type) && !is_offload(action.type); });
}

bool has_transport(const Schedule& schedule) {
  return any_action(schedule, [](const Action& action) {
    return is_send(action.type) || is_receive(action.type) || is_wait_send(action.type);
  });
}

bool has_offload(const Schedule& schedule) {
  return any_action(schedule, [](const Action& action) { return is_offload(action.type); });
}

bool has_backward(const Schedule& schedule) {
  return any_action(schedule,
                    [](const Action& action) { return is_compute(action.type) && action.type != ActionType::F; });
}

std::string shape_problem(const Schedule& schedule) {
  const auto text = [](auto number) { return std::to_string(number); };
  if (schedule.ranks.empty()) return "the schedule has no ranks";
  if (schedule.stages < 1) return "the schedule has " + text(schedule.stages) + " stages; at least 1 is needed";
  if (schedule.microbatches < 1) {
    return "the schedule has " + text(schedule.microbatches) + " micro-batches; at least 1 is needed";
  }
  const auto& replica_of = schedule.replica_of_microbatch;
  const int replicas = replica_of.empty() ? 1 : *std::max_element(replica_of.begin(), replica_of.end()) + 1;
  if (!replica_of.empty() && (replica_of.size() != static_cast<std::size_t>(schedule.microbatches) ||
                              *std::min_element(replica_of.begin(), replica_of.end()) < 0)) {
    return "replica_of_microbatch must name a replica, counted from 0, for each of " + text(schedule.microbatches) +
           " micro-batches";
  }
  if (schedule.rank_of_stage.size() != static_cast<std::size_t>(schedule.stages) * replicas) {
    return "rank_of_stage has " + text(schedule.rank_of_stage.size()) + " entries for " + text(schedule.stages) +
           " stages" + (replicas > 1 ? " in " + text(replicas) + " replicas" : "");
  }
  std::vector<bool> holds_a_stage(schedule.ranks.size());
  for (std::size_t i = 0; i < schedule.rank_of_stage.size(); ++i) {
    const int rank = schedule.rank_of_stage[i];
    if (rank < 0 || static_cast<std::size_t>(rank) >= schedule.ranks.size()) {
      return "stage " + text(i % schedule.stages) + " is on rank " + text(rank) + "; there are " +
             text(schedule.ranks.size()) + " ranks";
    }
    holds_a_stage[rank] = true;
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (!holds_a_stage[rank]) return "rank " + text(rank) + " holds no stage";
  }
  // A complete schedule has at least one action for each; a damaged one may lack a few, but not most.
  const std::size_t actions = action_count(schedule);
  const std::int64_t needed = std::int64_t{schedule.stages} * schedule.microbatches;
  if (needed > static_cast<std::int64_t>(4 * actions + 1024)) {
    return "the schedule has " + text(actions) + " actions; " + text(schedule.stages) + " stages and " +
           text(schedule.microbatches) + " micro-batches need at least " + text(needed);
  }
  return {};
}

}  // namespace plumbline::schedule

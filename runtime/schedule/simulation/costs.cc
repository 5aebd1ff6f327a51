#include "runtime/schedule/simulation/costs.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/error.h"
#include "runtime/text/significant.h"

namespace plumbline::schedule {
namespace {

[[noreturn]] void refuse(const std::string& reason) { throw InputError("simulate: " + reason); }

void require_duration(double value, const char* name) {
  if (!std::isfinite(value) || value < 0) {
    refuse(std::string(name) + " takes " + significant(value, 6) + "; a finite time not below 0 is needed");
  }
}

void require_durations(const Durations& durations) {
  require_duration(durations.forward, "a forward");
  require_duration(durations.input, "an input backward");
  require_duration(durations.weight, "a weight backward");
  if (durations.backward) require_duration(*durations.backward, "a full backward");
  require_duration(durations.comm, "a transfer");
  require_duration(durations.offload, "offloading activations");
  require_duration(durations.reload, "reloading activations");
  require_duration(durations.gather, "gathering parameters");
  require_duration(durations.reduce, "summing gradients");
  if (durations.forward == 0) refuse("a forward takes 0; a time above 0 is needed");
}

void require_link(const Link& link) {
  require_duration(link.latency, "a message");
  if (!(link.bandwidth > 0)) refuse("a bandwidth of " + significant(link.bandwidth, 6) + "; one above 0 is needed");
}

void require_bytes(double value, const char* what) {
  if (!std::isfinite(value) || value < 0) {
    refuse(std::string(what) + " of " + significant(value, 6) + " bytes; a finite number not below 0 is needed");
  }
}

void require_entries(std::size_t entries, int stages, const char* what) {
  if (entries != 1 && entries != static_cast<std::size_t>(stages)) {
    refuse(std::to_string(entries) + " " + what + " for " + std::to_string(stages) +
           " stages; one for all or one for each is needed");
  }
}

void require_weight_part(const std::optional<double>& part, double whole, const char* what) {
  if (!part) return;
  require_bytes(*part, "what a weight backward needs");
  if (*part > whole) refuse(std::string("a weight backward needs more than the ") + what);
}

}  // namespace

std::vector<StageEdge> with_skips(std::vector<StageEdge> edges, const std::vector<Skip>& skips) {
  if (skips.empty()) return edges;
  for (const Skip& skip : skips) edges.push_back(skip.edge);
  const auto ends = [](const StageEdge& edge) { return std::pair(edge.from, edge.to); };
  std::ranges::sort(edges, {}, ends);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

void require_costs(const Schedule& schedule, const StepCosts& costs) {
  require_entries(costs.durations.size(), schedule.stages, "durations");
  require_entries(costs.links.bytes.size(), schedule.stages, "sizes of messages");
  require_entries(costs.memory.size(), schedule.stages, "sizes of activations");
  for (const Durations& durations : costs.durations) require_durations(durations);
  for (double bytes : costs.links.bytes) require_bytes(bytes, "a message");
  for (const StageMemory& memory : costs.memory) {
    require_bytes(memory.activation, "activations");
    require_weight_part(memory.weight_part, memory.activation, "activations are");
  }
  for (const Skip& skip : costs.skips) {
    require_bytes(skip.bytes, "a skip");
    require_weight_part(skip.weight_part, skip.bytes, "skip is");
  }
  require_link(costs.links.all);
  const int ranks = static_cast<int>(schedule.ranks.size());
  for (const auto& [ends, link] : costs.links.of_ranks) {
    const auto [from, to] = ends;
    if (from < 0 || to < 0 || from >= ranks || to >= ranks) {
      refuse("a link from rank " + std::to_string(from) + " to rank " + std::to_string(to) + "; there are " +
             std::to_string(ranks) + " ranks");
    }
    require_link(link);
  }
  if (costs.links.buffers < 0) refuse(std::to_string(costs.links.buffers) + " buffers; at least 0 are needed");
}

double time_of(const StepCosts& costs, const Action& action) {
  if (!is_compute(action.type)) return 0;
  const Durations& d = of_stage(costs.durations, action.stage);
  if (action.type == ActionType::F) return d.forward;
  if (action.type == ActionType::B) return d.backward.value_or(d.input + d.weight);
  const bool input_half = action.type == ActionType::I;
  if (costs.first_stage_defers && action.stage == 0) return input_half ? 0 : d.input + d.weight;
  return input_half ? d.input : d.weight;
}

double time_of(const StepCosts& costs, std::span<const Action> members) {
  double sum = 0;
  for (const Action& member : members) sum += time_of(costs, member);
  if (members.size() == 1 || !costs.group_time) return sum;
  const double time = costs.group_time(costs, members, sum);
  require_duration(time, "a group");
  return time;
}

GroupTime hiding_shorter(double share) {
  return [share](const StepCosts& costs, std::span<const Action> members, double sum) {
    double forward = 0;
    for (const Action& member : members) forward += member.type == ActionType::F ? time_of(costs, member) : 0;
    return sum - share * std::min(forward, sum - forward);
  };
}

const Link& link_of(const StepCosts& costs, int from_rank, int to_rank) {
  if (costs.links.of_ranks.empty()) return costs.links.all;
  const auto found = costs.links.of_ranks.find({from_rank, to_rank});
  return found == costs.links.of_ranks.end() ? costs.links.all : found->second;
}

}  // namespace plumbline::schedule

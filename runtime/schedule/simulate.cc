#include "runtime/schedule/simulate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/error.h"
#include "runtime/schedule/check.h"
#include "runtime/schedule/replay.h"

namespace plumbline {
namespace {

void require_duration(double value, const char* name) {
  if (!std::isfinite(value) || value < 0) {
    throw InputError(std::string("simulate: ") + name + " takes " + std::to_string(value) +
                     "; a finite time not below 0 is needed");
  }
}

void require_durations(const Durations& durations) {
  require_duration(durations.forward, "a forward");
  require_duration(durations.input, "an input backward");
  require_duration(durations.weight, "a weight backward");
  if (durations.backward) require_duration(*durations.backward, "a full backward");
  require_duration(durations.comm, "a transfer");
  if (durations.forward == 0) throw InputError("simulate: a forward takes 0; a time above 0 is needed");
}

bool is_forward_only(const Schedule& compute) {
  return std::all_of(compute.ranks.begin(), compute.ranks.end(), [](const std::vector<Action>& actions) {
    return std::all_of(actions.begin(), actions.end(), [](const Action& a) { return a.type == ActionType::F; });
  });
}

std::vector<int> peak_live_activations(const Schedule& compute) {
  std::vector<int> peaks;
  for (const auto& actions : compute.ranks) {
    int live = 0, peak = 0;
    for (const Action& action : actions) {
      if (action.type == ActionType::F) peak = std::max(peak, ++live);
      if (action.type == ActionType::B || action.type == ActionType::W) --live;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

// When each action ends, and from that when the next can start.
class Clockwork {
 public:
  Clockwork(const Schedule& compute, const ActionIndex& index, const Durations& durations,
            const SimulateOptions& options)
      : compute_(compute), index_(index), durations_(durations), options_(options) {
    const std::size_t ranks = compute.ranks.size();
    timeline_.busy.assign(ranks, 0);
    timeline_.begin.assign(ranks, 0);
    timeline_.end.assign(ranks, 0);
    for (const auto& actions : compute.ranks) ends_.emplace_back(actions.size());
  }

  void run(const Step& step) {
    const Action& action = compute_.ranks[step.rank][step.position];
    double start = timeline_.end[step.rank];  // what it needs of its own rank ended before that
    if (action.type == ActionType::F && action.stage > 0) {
      start = std::max(start, arrival({action.stage - 1, ActionType::F, action.microbatch}, step.rank));
    }
    const bool backward = action.type == ActionType::B || action.type == ActionType::I;
    if (backward && action.stage + 1 < compute_.stages) {
      start = std::max(start, arrival(input_backward(index_, action.stage + 1, action.microbatch), step.rank));
    }
    const double duration = duration_of(action);
    const double end = start + duration;
    if (step.position == 0) timeline_.begin[step.rank] = start;
    ends_[step.rank][step.position] = end;
    timeline_.end[step.rank] = end;
    timeline_.busy[step.rank] += duration;
  }

  Timeline finish() {
    timeline_.makespan = *std::max_element(timeline_.end.begin(), timeline_.end.end());
    for (std::size_t rank = 0; rank < timeline_.end.size(); ++rank) {
      timeline_.longest_rank = std::max(timeline_.longest_rank, timeline_.end[rank] - timeline_.begin[rank]);
    }
    const double busy = std::accumulate(timeline_.busy.begin(), timeline_.busy.end(), 0.0);
    const auto bubble = [&](double time) { return 1 - busy / (static_cast<double>(timeline_.busy.size()) * time); };
    timeline_.bubble_makespan = bubble(timeline_.makespan);
    timeline_.bubble_longest_rank = bubble(timeline_.longest_rank);
    timeline_.peak_live = peak_live_activations(compute_);
    return std::move(timeline_);
  }

 private:
  double duration_of(const Action& action) const {
    const Durations& d = durations_;
    if (action.type == ActionType::F) return d.forward;
    if (action.type == ActionType::B) return d.backward.value_or(d.input + d.weight);
    const bool input_half = action.type == ActionType::I;
    if (options_.first_stage_defers && action.stage == 0) return input_half ? 0 : d.input + d.weight;
    return input_half ? d.input : d.weight;
  }

  double arrival(const Action& producer, int at_rank) const {
    const int rank = compute_.rank_of(producer.stage, producer.microbatch);
    return ends_[rank][index_.position(producer)] + (rank == at_rank ? 0 : durations_.comm);
  }

  const Schedule& compute_;
  const ActionIndex& index_;
  const Durations& durations_;
  const SimulateOptions& options_;
  std::vector<std::vector<double>> ends_;
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Schedule& compute, const Durations& durations, const SimulateOptions& options) {
  require_durations(durations);
  if (has_communication(compute)) {
    throw InputError("simulate: schedule " + compute.name + " has sends and receives; give the compute schedule");
  }
  const std::vector<StageEdge> edges = chain_edges(compute.stages);
  require_valid(compute, edges, {.forward_only = is_forward_only(compute)});

  const ActionIndex index(compute);
  Clockwork clockwork(compute, index, durations, options);
  for (const Step& step : replay(compute, StageGraph(compute.stages, edges), index).order) clockwork.run(step);
  return clockwork.finish();
}

double ideal_bubble(const Schedule& compute) { return simulate(compute, Durations{}).bubble_makespan; }

Timeline simulate(const Schedule& compute, double tf, double tb, double comm) {
  require_duration(tb, "a full backward");
  return simulate(compute, {.forward = tf, .input = tb / 2, .weight = tb / 2, .backward = tb, .comm = comm});
}

}  // namespace plumbline

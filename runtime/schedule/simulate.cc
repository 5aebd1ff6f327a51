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
    throw InputError(std::string("simulate: ") + name + " is " + std::to_string(value) +
                     "; a finite number not below 0 is needed");
  }
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
  Clockwork(const Schedule& compute, const ActionIndex& index, double tf, double tb, double comm)
      : compute_(compute), index_(index), tf_(tf), tb_(tb), comm_(comm) {
    const std::size_t ranks = compute.ranks.size();
    timeline_.busy.assign(ranks, 0);
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
    const double duration = duration_of(action.type);
    const double end = start + duration;
    ends_[step.rank][step.position] = end;
    timeline_.end[step.rank] = end;
    timeline_.busy[step.rank] += duration;
  }

  Timeline finish() {
    timeline_.makespan = *std::max_element(timeline_.end.begin(), timeline_.end.end());
    const double busy = std::accumulate(timeline_.busy.begin(), timeline_.busy.end(), 0.0);
    timeline_.bubble = 1 - busy / (static_cast<double>(timeline_.busy.size()) * timeline_.makespan);
    timeline_.peak_live = peak_live_activations(compute_);
    return std::move(timeline_);
  }

 private:
  double duration_of(ActionType type) const {
    if (type == ActionType::F) return tf_;
    return type == ActionType::B ? tb_ : tb_ / 2;
  }

  double arrival(const Action& producer, int at_rank) const {
    const int rank = compute_.rank_of_stage[producer.stage];
    return ends_[rank][index_.position(producer)] + (rank == at_rank ? 0 : comm_);
  }

  const Schedule& compute_;
  const ActionIndex& index_;
  const double tf_, tb_, comm_;
  std::vector<std::vector<double>> ends_;
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Schedule& compute, double tf, double tb, double comm) {
  require_duration(tf, "tf");
  require_duration(tb, "tb");
  require_duration(comm, "comm");
  if (tf == 0) throw InputError("simulate: tf is 0; a forward takes some time");
  if (has_communication(compute)) {
    throw InputError("simulate: schedule " + compute.name + " has sends and receives; give the compute schedule");
  }
  const std::vector<StageEdge> edges = chain_edges(compute.stages);
  require_valid(compute, edges, {.forward_only = is_forward_only(compute)});

  const ActionIndex index(compute);
  Clockwork clockwork(compute, index, tf, tb, comm);
  for (const Step& step : replay(compute, StageGraph(compute.stages, edges), index).order) clockwork.run(step);
  return clockwork.finish();
}

}  // namespace plumbline

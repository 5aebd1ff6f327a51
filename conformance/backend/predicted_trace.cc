#include "conformance/backend/predicted_trace.h"

#include <array>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::conformance {
namespace {

struct Mean {
  double sum = 0;
  int count = 0;
  double value() const { return count == 0 ? 0 : sum / count; }
};

std::vector<schedule::Durations> measured_durations(const schedule::Trace& measured, int stages) {
  std::vector<std::array<Mean, 4>> means(stages);  // F, B, I, W
  for (const std::vector<schedule::TimedAction>& rank : measured.ranks)
    for (const schedule::TimedAction& timed : rank) {
      if (!schedule::is_compute(timed.action.type)) continue;
      Mean& mean = means.at(timed.action.stage)[static_cast<size_t>(timed.action.type)];
      mean.sum += timed.end - timed.begin;
      ++mean.count;
    }
  std::vector<schedule::Durations> durations;
  for (const std::array<Mean, 4>& mean : means)
    durations.push_back({.forward = mean[static_cast<size_t>(schedule::ActionType::F)].value(),
                         .input = mean[static_cast<size_t>(schedule::ActionType::I)].value(),
                         .weight = mean[static_cast<size_t>(schedule::ActionType::W)].value(),
                         .backward = mean[static_cast<size_t>(schedule::ActionType::B)].value()});
  return durations;
}

}  // namespace

schedule::Durations sleeping_durations(const JobThroughput& item, const schedule::Schedule& schedule) {
  const double share = static_cast<double>(schedule.ranks.size()) / static_cast<double>(schedule.stages);
  const double backward = item.backward_ms * share;
  return {.forward = item.forward_ms * share, .input = backward / 2, .weight = backward / 2, .backward = backward};
}

schedule::Trace predicted_trace(const JobThroughput& item, const schedule::Trace& measured) {
  const schedule::Schedule schedule =
      schedule::make_schedule(item.schedule, static_cast<int>(measured.ranks.size()), item.microbatches);
  schedule::StepCosts costs;
  if (item.model.empty()) {
    costs.durations = {sleeping_durations(item, schedule)};
    costs.first_stage_defers = true;
  } else {
    costs.durations = measured_durations(measured, schedule.stages);
  }
  return schedule::simulate_step(schedule, schedule::chain_edges(schedule.stages), costs, {.trace = true}).trace;
}

}  // namespace plumbline::conformance

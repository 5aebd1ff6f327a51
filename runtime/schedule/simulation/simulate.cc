#include "runtime/schedule/simulation/simulate.h"

namespace plumbline::schedule {

Timeline simulate(const Schedule& compute, const Durations& durations, const SimulateOptions& options) {
  StepCosts costs;
  costs.durations = {durations};
  costs.first_stage_defers = options.first_stage_defers;
  return simulate_step(compute, chain_edges(compute.stages), costs).timeline;
}

double ideal_bubble(const Schedule& compute) { return simulate(compute, Durations{}).bubble_makespan; }

Timeline simulate(const Schedule& compute, double tf, double tb, double comm) {
  return simulate(compute, {.forward = tf, .input = tb / 2, .weight = tb / 2, .backward = tb, .comm = comm});
}

}  // namespace plumbline::schedule

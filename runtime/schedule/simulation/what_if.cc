#include "runtime/schedule/simulation/what_if.h"

#include <cmath>
#include <string>

#include "runtime/error.h"

namespace plumbline::schedule {

StepCosts scaled(const Schedule& compute, const StepCosts& costs, const Scaling& scaling) {
  if (scaling.stage && (*scaling.stage < 0 || *scaling.stage >= compute.stages)) {
    throw InputError("simulate: stage " + std::to_string(*scaling.stage) + " cannot be scaled; there are stages 0 to " +
                     std::to_string(compute.stages - 1));
  }
  if (!std::isfinite(scaling.factor) || scaling.factor < 0) {
    throw InputError("simulate: a time cannot be scaled by " + std::to_string(scaling.factor) +
                     "; a finite factor not below 0 is needed");
  }
  StepCosts result = costs;
  result.durations.clear();
  for (int stage = 0; stage < compute.stages; ++stage) {
    Durations& d = result.durations.emplace_back(of_stage(costs.durations, stage));
    if (scaling.stage && *scaling.stage != stage) continue;
    const auto applies = [&](ActionType type) { return !scaling.kind || *scaling.kind == type; };
    const double whole = d.backward.value_or(d.input + d.weight) * (applies(ActionType::B) ? scaling.factor : 1);
    if (applies(ActionType::F)) d.forward *= scaling.factor;
    if (applies(ActionType::I)) d.input *= scaling.factor;
    if (applies(ActionType::W)) d.weight *= scaling.factor;
    if (d.backward || scaling.kind) d.backward = whole;
  }
  require_costs(compute, result);
  return result;
}

std::vector<WhatIf> what_if(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs,
                            const std::vector<Scaling>& scalings) {
  std::vector<WhatIf> results;
  const double before = simulate_step(compute, edges, costs).timeline.makespan;
  for (const Scaling& scaling : scalings) {
    const double after = simulate_step(compute, edges, scaled(compute, costs, scaling)).timeline.makespan;
    const double change = scaling.factor - 1;
    results.push_back({scaling, before, after, change == 0 ? 0 : (after - before) / before / change});
  }
  return results;
}

}  // namespace plumbline::schedule

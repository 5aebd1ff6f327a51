// Computes the duration of a step if a stage, or a kind of action, were faster or slower.
#pragma once

#include <optional>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::schedule {

/// Multiplies the time of some actions.
struct Scaling {
  std::optional<int> stage = {};        ///< empty: all stages
  std::optional<ActionType> kind = {};  ///< F, B, I or W; empty: all kinds
  double factor = 1;
};

/// Returns the costs after scaling, with durations for each stage. If only I or W is scaled, B keeps its time, even if
/// that is the sum of I and W by default. Throws InputError for a stage that does not exist, for a factor that is not
/// finite or below 0 (for F: not above 0), and as require_costs() does.
StepCosts scaled(const Schedule& compute, const StepCosts& costs, const Scaling& scaling);

struct WhatIf {
  Scaling scaling;
  double before = 0, after = 0;  ///< makespans without and with the scaling
  /// The relative change of the makespan divided by factor - 1: 0 if the scaled actions do not matter, 1 if the
  /// makespan grows by the same factor. 0 for factor 1.
  double sensitivity = 0;
};

/// Simulates the step once unchanged and once for each scaling; returns one entry for each scaling, in the given order.
/// Throws InputError as simulate_step() and scaled() do.
std::vector<WhatIf> what_if(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs,
                            const std::vector<Scaling>& scalings);

}  // namespace plumbline::schedule

// The duration of a step if a stage, or a kind of action, were faster or slower.
#pragma once

#include <optional>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::schedule {

/// Multiplies the time of some actions.
struct Scaling {
  std::optional<int> stage = {};        ///< by default all stages
  std::optional<ActionType> kind = {};  ///< F, B, I or W; by default all kinds
  double factor = 1;
};

/// The costs after scaling: durations for each stage. A B whose time is that of I and W keeps its time when only I or W
/// is scaled. Throws InputError for a stage that does not exist and for factors that are not finite or below 0 (of F:
/// not above 0).
StepCosts scaled(const Schedule& compute, const StepCosts& costs, const Scaling& scaling);

struct WhatIf {
  Scaling scaling;
  double before = 0, after = 0;  ///< makespans
  /// The relative change of the makespan divided by that of the scaled time: 0 if it does not matter, 1 if the step
  /// grows as much as the actions do. 0 for factor 1.
  double sensitivity = 0;
};

/// Simulates once unchanged and once for each scaling. Throws as simulate_step and scaled do.
std::vector<WhatIf> what_if(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs,
                            const std::vector<Scaling>& scalings);

}  // namespace plumbline::schedule

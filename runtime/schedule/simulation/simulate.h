// The theoretical duration of a schedule on a chain of equal stages, for comparison with measured throughput.
//
// The model is that of the zero-bubble paper's tables (Qi et al., arXiv 2401.10241): each rank executes its actions
// strictly in order, an action starts when its rank is free and its needs are met, and a value from another rank
// arrives `comm` after it was made, without occupying either rank. So it is a lower bound for a real run. simulation.h
// has the rest: stages that differ, links, memory, traces.
#pragma once

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::schedule {

struct SimulateOptions {
  bool first_stage_defers = false;  ///< as in StepCosts
};

/// `compute` is a compute schedule over a chain of stages (0 -> 1 -> ...), possibly forward-only. Throws as
/// simulate_step does.
Timeline simulate(const Schedule& compute, const Durations& durations, const SimulateOptions& options = {});

/// The idle fraction of all ranks' time, from the first action of the step to the last, for equal stages, free
/// transfers and F = I = W. Throws as simulate does.
double ideal_bubble(const Schedule& compute);

/// The same with a backward of `tb` whose halves take tb / 2 each.
Timeline simulate(const Schedule& compute, double tf, double tb, double comm = 0);

}  // namespace plumbline::schedule

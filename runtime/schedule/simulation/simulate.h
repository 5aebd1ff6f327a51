// Computes the theoretical duration of a schedule on a chain of equal stages, for comparison with measured throughput.
//
// The model is that of the zero-bubble paper's tables (Qi et al., arXiv 2401.10241): each rank executes its actions
// strictly in order, an action begins when its rank is free and its needs are met, and a value from another rank
// arrives `comm` after its action ended, without occupying either rank. So the result is a lower bound for a real run.
// simulation.h also covers stages that differ, links, memory and traces.
#pragma once

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::schedule {

struct SimulateOptions {
  bool first_stage_defers = false;  ///< as in StepCosts
};

/// Simulates one step of `compute`, a compute schedule over a chain of stages (0 -> 1 -> ...), possibly forward-only.
/// `durations` apply to every stage. Throws InputError as simulate_step() does.
Timeline simulate(const Schedule& compute, const Durations& durations, const SimulateOptions& options = {});

/// The idle fraction of all ranks' time from 0 to the makespan, for equal stages, free transfers and F = I = W = 1, B =
/// 2. Throws InputError as simulate() does.
double ideal_bubble(const Schedule& compute);

/// simulate() with a forward of `tf`, a backward of `tb` and halves of tb / 2 each.
Timeline simulate(const Schedule& compute, double tf, double tb, double comm = 0);

}  // namespace plumbline::schedule
